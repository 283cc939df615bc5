# SPDX-License-Identifier: Apache-2.0
"""Tests of tern serve in the long run: its log, limits of keys, and the files that SIGHUP reads again."""

import contextlib
import json
import os
import resource
import signal
import socket

import common
from common import suite
from serving import JSON, LONG, SLOW, Server
from test_serve import QUESTION

MESSAGES = [{"role": "user", "content": QUESTION}]


def read_some(pipe):
    try:
        return os.read(pipe, 65536)
    except BlockingIOError:
        return b""


class Log(common.FolderTest):
    def setUp(self):
        self.path = self.dir / f"{self.id()}.log"

    def served(self, *options, **kwargs):
        """A server with a log that was asked one question, and has ended."""
        with Server("--log-file", self.path, *options, **kwargs) as server:
            headers = {"x-api-key": "key-of-alice"} | JSON
            reply = server.ask("POST", "/v1/chat/completions", {"messages": MESSAGES, "secret\n": 1}, headers)
            server.get("/nothing/../%0a")
        return reply

    def test_json_lines(self):
        reply = self.served("--log-format", "json", env={"TERN_API_KEY": "key-of-alice"})
        usage = reply.json()["usage"]
        first, second = [json.loads(line) for line in self.path.read_text().splitlines()]
        self.assertRegex(first.pop("time"), r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertGreater(first.pop("seconds"), 0)
        self.assertEqual(first, {
            "key": "key1", "method": "POST", "path": "/chat/completions", "status": 200, "bytes": len(reply.body),
            "complete": True, "prompt_tokens": usage["prompt_tokens"], "cached_tokens": 0,
            "generated_tokens": usage["completion_tokens"]})
        self.assertEqual((second["key"], second["path"], second["status"]), (None, "-", 404))

    def test_text_lines(self):
        self.served()
        first, second = self.path.read_text().splitlines()
        self.assertRegex(first, r"^\S+Z - POST /chat/completions 200 \d+ bytes \d+\.\d{3} s 12 \+ 2 tokens$")
        self.assertRegex(second, r"^\S+Z - - - 404 \d+ bytes \d+\.\d{3} s$")
        self.assertEqual(self.path.stat().st_mode & 0o777, 0o600)

    def test_prompts_when_asked(self):
        self.served("--log-format", "json", "--log-prompts")
        line = json.loads(self.path.read_text().splitlines()[0])
        self.assertEqual(json.loads(line["body"])["messages"], MESSAGES)
        self.assertEqual(line["body_bytes"], len(line["body"]))
        self.path.unlink()
        self.served("--log-prompts")
        line = self.path.read_text().splitlines()[0]
        self.assertEqual(json.loads(json.loads(line.split(" tokens ", 1)[1]))["messages"], MESSAGES)

    def test_choices_of_one_prompt(self):
        """The answer is computed once, and counted once."""
        with Server("--log-file", self.path, "--log-format", "json") as server:
            usage = server.complete("Once upon", n=3, max_tokens=4, ignore_eos=True).json()["usage"]
        line = json.loads(self.path.read_text().splitlines()[0])
        self.assertEqual((line["prompt_tokens"], line["generated_tokens"]), (usage["prompt_tokens"], 12))

    def test_a_client_that_left(self):
        with Server("--log-file", self.path, "--log-format", "json", *SLOW) as server:
            connection = server.connect()
            connection.request("POST", "/v1/completions", json.dumps({"prompt": "Once upon"} | LONG), JSON)
            connection.getresponse().readline()
            connection.close()
            suite.until(lambda: self.path.read_text().endswith("\n"))
        self.assertIs(json.loads(self.path.read_text().splitlines()[0])["complete"], False)

    def test_a_log_on_a_full_disk(self):
        with Server("--log-file", "/dev/full") as server:
            for _ in range(3):
                self.assertEqual(server.chat(QUESTION).status, 200)
            server.wait_for(lambda m: m["tern_log_dropped_lines_total"] >= 4)
            self.assertEqual(server.chat(QUESTION).status, 200)
            self.assertEqual(self.complaints(server), 1)
            server.signal(signal.SIGHUP)  # the file is opened anew, and so it is told anew
            suite.until(lambda: server.get("/health").status == 200 and self.complaints(server) == 2)
            self.assertEqual(server.chat(QUESTION).status, 200)
        self.assertEqual(self.complaints(server), 2)

    @staticmethod
    def complaints(server):
        return server.log().count("/dev/full: cannot be written: No space left on device")

    def test_a_disk_that_has_room_again(self):
        with Server("--log-file", self.path, "--log-format", "json") as server:
            pid = server.process.pid
            _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (1000, hard))  # ends in the middle of a line
            server.wait_for(lambda m: m["tern_log_dropped_lines_total"] >= 3)
            self.assertLessEqual(self.path.stat().st_size, 1000)
            lines = self.path.read_text().splitlines(True)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
            self.assertEqual(server.chat(QUESTION).status, 200)
            suite.until(lambda: "/chat/" in self.path.read_text())
        after = self.path.read_text().splitlines(True)
        self.assertEqual(after[: len(lines)], lines)
        self.assertGreater(len(lines), 2)
        self.assertEqual([json.loads(line)["method"] for line in after if "chat" not in line][0], "GET")
        self.assertTrue(all(json.loads(line)["status"] == 200 for line in after))

    def test_nobody_reads_the_log(self):
        """A full pipe does not hold anybody up, and the server ends."""
        path = self.dir / "pipe"
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        prompt = "x" * 16000
        with Server("--log-file", path, "--log-prompts") as server:
            for _ in range(100):
                self.assertEqual(server.post("/tokenize", content=prompt).status, 200)
            self.assertGreater(server.metrics()["tern_log_dropped_lines_total"], 0)
            self.assertEqual(server.stop(), 0)

    def test_a_pipe_without_a_reader(self):
        """The server does not wait for a reader, neither at the start nor when the log is opened again."""
        path = self.dir / "unread"
        os.mkfifo(path)
        result = common.tern("serve", "--port", 0, "--log-file", path)
        self.assert_one_line_error(result, contains=(f"{path}: cannot be opened: a pipe that nobody reads",))
        with Server("--log-file", self.path) as server:
            self.path.unlink()
            os.mkfifo(self.path)
            server.signal(signal.SIGHUP)
            suite.until(lambda: "the log stays in the old file" in server.log())
            self.assertEqual(server.get("/health").status, 200)
            self.assertEqual(server.stop(), 0)

    def test_a_pipe_whose_reader_comes_back(self):
        """Lines without a reader are lost, counted and told once; those after it are written."""
        path = self.dir / "left"
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with Server("--log-file", path) as server:
            server.get("/health")
            suite.until(lambda: b"/health" in read_some(reader))
            os.close(reader)
            server.wait_for(lambda m: m["tern_log_dropped_lines_total"] >= 2)
            reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            self.addCleanup(os.close, reader)
            server.get("/props")
            suite.until(lambda: b"/props" in read_some(reader))
        self.assertEqual(server.log().count(f"{path}: cannot be written: Broken pipe"), 1)

    def test_no_descriptor_is_left(self):
        """The log needs no descriptor while it is written, and goes on when there are some again."""
        with Server("--log-file", self.path) as server:
            connection = server.connect()
            self.addCleanup(connection.close)

            def ask(path):
                connection.request("GET", path)
                return connection.getresponse().read()

            ask("/health")
            suite.until(lambda: "/health" in self.path.read_text())
            pid = server.process.pid
            _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, hard))  # fewer than it has: none is given
            ask("/props")
            suite.until(lambda: "/props" in self.path.read_text())
            server.signal(signal.SIGHUP)
            suite.until(lambda: "the log stays in the old file" in server.log())
            self.assertIn("Too many open files", server.log())
            ask("/slots")
            suite.until(lambda: "/slots" in self.path.read_text())
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard, hard))
            moved = self.path.with_suffix(".1")
            self.path.rename(moved)
            server.signal(signal.SIGHUP)
            suite.until(self.path.exists)
            ask("/models")
            suite.until(lambda: "/models" in self.path.read_text())
            self.assertEqual(server.metrics()["tern_log_dropped_lines_total"], 0)

    def test_a_log_that_cannot_be_opened(self):
        missing = self.dir / "missing" / "log"
        self.assert_one_line_error(common.tern("serve", "--port", 0, "--log-file", missing), contains=(str(missing),))

    def test_a_log_is_no_file_that_is_read(self):
        self.path.write_text("key\n")
        result = common.tern("serve", "--port", 0, "--api-key-file", self.path, "--log-file", self.path)
        self.assert_one_line_error(result, status=2, contains=(str(self.path), "is read by this command"))
        self.assertEqual(self.path.read_text(), "key\n")

    def test_sighup_opens_it_again(self):
        with Server("--log-file", self.path, "--log-format", "json") as server:
            server.get("/health")
            suite.until(lambda: "/health" in self.path.read_text())
            moved = self.path.with_suffix(".1")
            self.path.rename(moved)
            server.signal(signal.SIGHUP)
            suite.until(self.path.exists)
            server.get("/props")
        self.assertEqual([json.loads(line)["path"] for line in moved.read_text().splitlines()], ["/health"])
        self.assertEqual([json.loads(line)["path"] for line in self.path.read_text().splitlines()], ["/props"])

    def test_sighup_again_and_again(self):
        """Each time the old file is closed, whether a line was written to it or not."""
        with Server("--log-file", self.path, "--log-format", "json") as server:
            def again(number):
                moved = self.path.with_suffix(f".{number}")
                self.path.rename(moved)
                server.signal(signal.SIGHUP)
                suite.until(self.path.exists)

            suite.until(lambda: self.opened(server) == [str(self.path)])
            for number in range(4):
                again(number)
                server.get("/health")
                suite.until(lambda: "/health" in self.path.read_text())
                suite.until(lambda: self.opened(server) == [str(self.path)])

    def opened(self, server):
        """Lists the descriptors of the log that a server has open."""
        folder = f"/proc/{server.process.pid}/fd"
        links = []
        for name in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
                links.append(os.readlink(f"{folder}/{name}"))
        return [link for link in links if link.startswith(str(self.dir))]


class Port(common.FolderTest):
    def test_a_port_that_another_program_has(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            result = common.tern("serve", "--port", port)
        self.assert_one_line_error(result, 1, [f"127.0.0.1 port {port}: cannot listen", "--port takes another"])


class Keys(common.FolderTest):
    def setUp(self):
        self.path = self.dir / f"{self.id()}.txt"

    def ask(self, server, key, **fields):
        return server.ask("POST", "/v1/chat/completions", {"messages": MESSAGES} | fields, {"x-api-key": key} | JSON)

    def limited(self, reply):
        error = reply.json()["error"]
        self.assertEqual((reply.status, error["type"], error["code"], error["param"]),
                         (429, "rate_limit_error", "rate_limit_exceeded", None))
        return int(reply.headers["retry-after"]), error["message"]

    def test_requests_at_once(self):
        self.path.write_text("alice key-a requests=1\nbob key-b\n")
        with Server("--api-key-file", self.path, *SLOW) as server:
            connection = server.connect()
            body = {"prompt": "Once upon"} | LONG
            connection.request("POST", "/v1/completions", json.dumps(body), {"x-api-key": "key-a"} | JSON)
            connection.getresponse().readline()
            seconds, message = self.limited(self.ask(server, "key-a"))
            self.assertGreaterEqual(seconds, 1)
            self.assertIn("1 answers at once", message)
            self.assertEqual(self.ask(server, "key-b").status, 200)
            self.assertEqual(server.ask("POST", "/tokenize", {"content": "x"}, {"x-api-key": "key-a"} | JSON).status, 200)
            connection.close()
            suite.until(lambda: self.ask(server, "key-a").status == 200)
            self.assertEqual([self.ask(server, "key-a").status for _ in range(3)], [200] * 3)

    def test_tokens_per_minute(self):
        self.path.write_text("alice key-a tokens-per-minute=30\nbob key-b tokens-per-minute=100000\n")
        with Server("--api-key-file", self.path) as server:
            used = self.ask(server, "key-a", max_tokens=60, ignore_eos=True).json()["usage"]["total_tokens"]
            self.assertGreater(used, 60)
            seconds, message = self.limited(self.ask(server, "key-a"))
            self.assertIn("30 tokens a minute", message)
            self.assertLessEqual(abs(seconds - (used - 30 + 1) * 2), 4)  # half a token comes back each second
            self.assertEqual(self.ask(server, "key-b").status, 200)

    def test_limits_that_mean_nothing(self):
        for line in ("a k requests=0", "a k requests=x", "a k requests=", "a k speed=3", "a k requests=1 requests=2",
                     "a k requests=1 tokens-per-minute=5 x", "a k tokens-per-minute=-1", "a k requests=9999999999"):
            with self.subTest(line=line):
                self.path.write_text(f"fine key\n{line}\n")
                result = common.tern("serve", "--port", 0, "--api-key-file", self.path)
                self.assert_one_line_error(result, contains=(str(self.path), "line 2"))

    def test_sighup_reads_the_keys_again(self):
        self.path.write_text("alice key-a tokens-per-minute=30\nbob key-b\n")
        with Server("--api-key-file", self.path, "--access-log") as server:
            def reload(text, told):
                times = server.log().count(told)
                self.path.write_text(text)
                server.signal(signal.SIGHUP)
                suite.until(lambda: server.log().count(told) > times)

            self.assertEqual(self.ask(server, "key-a", max_tokens=60, ignore_eos=True).status, 200)
            reload("alice key-a tokens-per-minute=31\ncarol key-c\n", "SIGHUP: 2 keys were read")
            self.limited(self.ask(server, "key-a"))  # what was used before still counts
            self.assertEqual([self.ask(server, f"key-{k}").status for k in "bc"], [401, 200])
            reload("a b c d\n", "the keys stay those that were read before")
            self.assertEqual([self.ask(server, f"key-{k}").status for k in "bc"], [401, 200])
            reload("someone key-a\n", "SIGHUP: 1 keys were read")
            self.assertEqual([self.ask(server, f"key-{k}").status for k in "ac"], [200, 401])
            self.assertEqual(server.stop(), 0)  # a reply may be there before its line in the log
            self.assertIn(" someone POST ", server.log())
            self.assertIn(f"{self.path}: line 1", server.log())

    def test_sighup_with_a_pipe_in_place_of_the_keys(self):
        """The server does not wait for it: the old keys count, and the server ends when it is asked to."""
        for replace in (os.mkfifo, lambda path: os.symlink("/dev/zero", path)):
            self.path.write_text("alice key-a\n")
            with self.subTest(replace=replace), Server("--api-key-file", self.path) as server:
                self.path.unlink()
                replace(self.path)
                server.signal(signal.SIGHUP)
                suite.until(lambda: "the keys stay those that were read before" in server.log())
                self.assertIn(f"{self.path}: not a regular file", server.log())
                self.assertEqual(self.ask(server, "key-a").status, 200)
                self.assertEqual(server.stop(), 0)
            self.path.unlink()

    def test_a_file_of_keys_has_a_limit(self):
        self.path.write_text("# remark\n" * 150000)
        result = common.tern("serve", "--port", 0, "--api-key-file", self.path)
        self.assert_one_line_error(result, contains=(str(self.path), "has more than 1048576 bytes"))

    def test_a_key_that_is_gone_while_it_is_used(self):
        self.path.write_text("alice key-a requests=2\n")
        with Server("--api-key-file", self.path, "--access-log") as server:
            connection = server.connect()
            self.addCleanup(connection.close)
            body = {"prompt": "Once upon", "max_tokens": 300, "ignore_eos": True, "stream": True}
            connection.request("POST", "/v1/completions", json.dumps(body), {"x-api-key": "key-a"} | JSON)
            reply = connection.getresponse()
            self.path.write_text("bob key-b\n")
            server.signal(signal.SIGHUP)
            suite.until(lambda: "keys were read" in server.log())
            self.assertTrue(reply.read().endswith(b"data: [DONE]\n\n"))
            self.assertEqual(server.stop(), 0)
            self.assertIn(" alice POST /completions 200 ", server.log())


if __name__ == "__main__":
    common.main()
