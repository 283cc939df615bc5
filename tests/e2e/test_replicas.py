# SPDX-License-Identifier: Apache-2.0
"""Replicas behind a balancer, as docs/scaling.md sets it up: replies are those of one server, whichever of them dies."""

import contextlib
import http.client
import json
import random
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest

import common
import serving
from common import suite
from serving import Server

PAGE = (common.ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
PROMPTS = ["Once upon a time", "The bear", "One day a girl", "There was", "In the wood"]


def block(containing):
    """The configuration of the page that has this in it."""
    [found] = [text for text in re.findall(r"^```\w+\n(.*?)^```", PAGE, re.S | re.M) if containing in text]
    return found


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def program(name):
    """Debian has balancers in /usr/sbin, where not everyone looks."""
    path = shutil.which(name, path="/usr/local/sbin:/usr/sbin:/usr/bin")
    if path is None:
        raise unittest.SkipTest(f"{name} is not installed")
    return path


def ask(port, prompt, **fields):
    """The reply of the balancer; one that breaks is asked again, which cannot give another text."""
    for _ in range(2000):  # a minute of a loaded machine, where checks may call every replica dead for a while
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request("POST", "/v1/completions", json.dumps({"prompt": prompt, "temperature": 0} | fields),
                               serving.JSON)
            response = connection.getresponse()
            body = response.read()
            if response.status == 200:
                return json.loads(body)
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
        time.sleep(0.03)
    raise AssertionError(f"{prompt}: no replica answered")


class Balanced(common.FolderTest):
    @contextlib.contextmanager
    def replicas(self, n):
        with contextlib.ExitStack() as stack:
            yield [stack.enter_context(Server("-m", common.small_model(), "--threads", "1")) for _ in range(n)]

    @contextlib.contextmanager
    def balancer(self, servers):
        """HAProxy with the page's configuration, its ports those of the test."""
        port = free_port()
        text = block("frontend tern").replace("bind :8000", f"bind 127.0.0.1:{port}")
        for i, server in enumerate(servers, 1):
            text = re.sub(rf"(server replica{i}) \S+", rf"\1 127.0.0.1:{server.port}", text)
        path = self.dir / "haproxy.cfg"
        path.write_text(text)
        subprocess.run([program("haproxy"), "-c", "-q", "-f", path], check=True)
        with subprocess.Popen([program("haproxy"), "-db", "-f", path], stderr=subprocess.DEVNULL) as process:
            try:
                suite.until(lambda: self.answers(port))
                yield port
            finally:
                process.terminate()

    @staticmethod
    def answers(port):
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", "/ready")
            return connection.getresponse().status == 200
        return False

    def test_killed_at_random(self):
        """Two of three replicas are killed under load: every text and digest is the one of a server that is alone. A
        client asks again where a reply broke."""
        program("haproxy")
        fields = {"max_tokens": 24}
        with self.replicas(3) as servers, self.balancer(servers) as port:
            alone = {prompt: ask(servers[0].port, prompt, **fields) for prompt in PROMPTS}
            wrong, done, over = [], [0], threading.Event()

            def client(seed):
                numbers = random.Random(seed)
                while not over.is_set():
                    prompt = numbers.choice(PROMPTS)
                    found = ask(port, prompt, **fields)
                    done[0] += 1
                    if found["choices"][0]["text"] != alone[prompt]["choices"][0]["text"] or \
                            found["tern"]["digest"] != alone[prompt]["tern"]["digest"]:
                        wrong.append((prompt, found))

            threads = [threading.Thread(target=client, args=(seed,)) for seed in range(4)]
            for thread in threads:
                thread.start()
            before = done[0]
            for server in servers[1:]:  # one stays
                suite.until(lambda since=done[0]: done[0] > since + 20)
                server.signal(signal.SIGKILL)
                server.process.wait()
                suite.until(lambda since=done[0]: done[0] > since + 20)
            over.set()
            for thread in threads:
                thread.join()
            self.assertEqual(wrong, [])
            self.assertGreater(done[0], before + 60)

    def test_nginx_takes_the_page(self):
        """nginx reads the configuration of the page."""
        path = self.dir / "nginx.conf"
        path.write_text(f"pid {self.dir}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n"
                        + block("upstream replicas") + "}\n")
        done = subprocess.run([program("nginx"), "-t", "-q", "-c", path], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_drained(self):
        """A server that got SIGTERM says 503 at /ready, ends what runs, and loses no reply."""
        with Server("-m", common.small_model(), "--threads", "1", *serving.SLOW) as server:
            fields = {"prompt": "Once upon a time", "temperature": 0, "max_tokens": 200, "ignore_eos": True}
            results = []
            thread = threading.Thread(target=lambda: results.append(server.post("/v1/completions", **fields)))
            thread.start()
            server.wait_for(lambda values: values["tern_answers_running"] > 0)
            server.signal()
            suite.until(lambda: serving.not_ready(server))
            thread.join()
            self.assertEqual(results[0].status, 200)
            self.assertEqual(results[0].json()["usage"]["completion_tokens"], 200)

    def test_continued(self):
        """A stream that broke goes on at another replica from its tokens: together they are the whole text."""
        with self.replicas(2) as (first, second):
            prompt = first.post("/tokenize", content="Once upon a time", add_special=True).json()["tokens"]

            def answer(server, prompt, n):
                return server.post("/completion", prompt=prompt, n_predict=n, temperature=0, ignore_eos=True,
                                   return_tokens=True).json()

            whole = answer(first, prompt, 24)
            seen = whole["tokens"][:9]
            rest = answer(second, prompt + seen, 15)
            self.assertEqual(seen + rest["tokens"], whole["tokens"])


class Kubernetes(unittest.TestCase):
    def test_manifests(self):
        """The manifests of the page are what their schemas ask for; a pod has longer to end than the server takes."""
        try:
            import kubernetes_validate
            import yaml
        except ImportError:
            self.skipTest("kubernetes-validate is not installed")
        deployment, service = yaml.safe_load_all(block("kind: Deployment"))
        for manifest in (deployment, service):
            kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)
        pod = deployment["spec"]["template"]["spec"]
        args = pod["containers"][0]["args"]
        self.assertGreater(pod["terminationGracePeriodSeconds"], int(args[args.index("--drain") + 1]))
        probes = [pod["containers"][0][probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")]
        self.assertEqual(probes, ["/health", "/ready"])
        with Server("-m", common.small_model(), *args[2:]) as server:
            self.assertEqual([server.get(path).status for path in probes], [200, 200])


if __name__ == "__main__":
    common.main()
