# SPDX-License-Identifier: Apache-2.0
"""The tests with threads, built anew with the thread sanitizer: a race, or a barrier that is missing,
ends them. It uses only scalar rows: threads share the same data with all rows, and these are quickly built.

    python3 tests/e2e/test_thread_sanitizer.py --tern build/tern [Threads.test_session ...]
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import common
import suite
from serving import JSON, Server, together

# These functions of long programs run; all of them would take minutes.
ONLY = {
    "engine": "test_threads",
    "engine_cancel": "test_at_any_time",
    "parity": "test_decoding_evaluates_each_token_once",
    "runner": "test_f16",
}
OPTIONS = ["-DTERN_SCALAR_ONLY=ON", "-DTERN_SHARED=OFF", "-DTERN_CUDA=OFF", "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1 -Wno-maybe-uninitialized -Wno-format-truncation"]
SHARES = 6  # of the presets; another sixth each turn
RACE = """
#include <pthread.h>
static int shared; /* touched so often that the sanitizer cannot miss it: of one touch each it may */
static void *add(void *p) {
    for (int i = 0; i < 10000; i++)
        shared++;
    return p;
}
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, add, 0);
    add(0);
    return pthread_join(t, 0);
}
"""
FOUND = 66  # the sanitizer's exit status


def clean_environment(name):
    share = f"{suite.turn() % SHARES}/{SHARES}"
    options = {"TERN_TEST_SHARE": share, "TSAN_OPTIONS": f"halt_on_error=1:exitcode={FOUND}"}
    if name in ONLY:
        options["TERN_TEST_FUNCTION"] = ONLY[name]
    return common.unfenced_environment(**options)


def run(command, **options):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)


def why_not():
    """Returns None where a race is found as it must be, else what is missing."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "race.c"), Path(folder, "race")
        source.write_text(RACE)
        compiler = os.environ.get("CC", "cc")
        built = run([compiler, "-g", "-fsanitize=thread", source, "-o", program, "-pthread"])
        if built.returncode:
            return f"{compiler} has no thread sanitizer"
        if run([program], env=clean_environment("")).returncode != FOUND:
            return "the thread sanitizer does not run here"
    return None


def ask_for_everything(server):
    """Makes some dozens of requests, many at once; clients leave half of the streams."""
    body = {"prompt": "Once upon", "max_tokens": 8, "temperature": 0, "n": 2, "logprobs": 1}

    def leave():
        connection = server.connect()
        connection.request("POST", "/v1/completions", json.dumps(body | {"stream": True, "max_tokens": 400}), JSON)
        connection.getresponse().readline()
        connection.close()

    calls = [leave, lambda: server.post("/v1/completions", **body), lambda: server.post("/v1/completions", stream=True, **body),
             lambda: server.chat("What is 2+2?"), lambda: server.get("/metrics"), lambda: server.get("/slots")]
    for _ in range(3):
        together(2 * calls)
        server.signal(signal.SIGHUP)
    server.wait_for(lambda m: m["tern_answers_running"] + m["tern_answers_waiting"] == 0)


class Threads(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        missing = why_not() if shutil.which("ninja") else "ninja is not installed"
        if missing:
            raise unittest.SkipTest(missing)
        cls.build = Path(common._options.tern).parent / "tsan"
        cls.must(["cmake", "--preset", "tsan", "-B", cls.build, *OPTIONS])

    @staticmethod
    def must(command):
        result = run(command, cwd=common.ROOT)
        if result.returncode:
            raise AssertionError(result.stdout[-3000:] + result.stderr[-1000:])

    def check(self, name):
        self.must(["ninja", "-C", self.build, f"test_{name}"])
        environment = clean_environment(name)
        result = run([self.build / "tests" / f"test_{name}"], env=environment, cwd=self.build)
        self.assertEqual(result.returncode, 0, (result.stdout + result.stderr)[-4000:])

    def test_attention(self):
        self.check("attention")

    def test_engine(self):
        self.check("engine")

    def test_engine_cancel(self):
        self.check("engine_cancel")

    def test_generate(self):
        self.check("generate")

    def test_image_cache(self):
        self.check("image_cache")

    def test_load_jobs(self):
        self.check("load_jobs")

    def test_metrics(self):
        self.check("metrics")

    def test_parity(self):
        self.check("parity")

    def test_runner(self):
        self.check("runner")

    def test_serve_audit(self):
        """A server, and a client in the same process."""
        if run(["ninja", "-C", self.build, "-t", "query", "test_serve_audit"]).returncode:
            self.skipTest("built without tern serve")
        self.check("serve_audit")

    def test_server(self):
        """The client is another process: sockets within one process would put its threads in order."""
        if run(["ninja", "-C", self.build, "-t", "query", "test_serve_audit"]).returncode:
            self.skipTest("built without tern serve")
        self.must(["ninja", "-C", self.build, "tern_program"])
        common.small_model()
        with mock.patch.object(common._options, "tern", str(self.build / "tern")):
            server = Server("--access-log", "--self-audit", env=clean_environment(""))
        with server:
            ask_for_everything(server)
            self.assertEqual(server.stop(), 0, server.log()[-4000:])

    def test_session(self):
        self.check("session")

    def test_session_file(self):
        self.check("session_file")

    def test_session_reuse(self):
        self.check("session_reuse")

    def test_stages(self):
        self.check("stages")

    def test_team(self):
        self.check("team")

    def test_tune(self):
        self.check("tune")

    def test_weights(self):
        self.check("weights")


if __name__ == "__main__":
    common.main()
