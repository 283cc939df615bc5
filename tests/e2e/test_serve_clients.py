# SPDX-License-Identifier: Apache-2.0
"""tern serve and its clients: those that leave, those that do not read, and the end of all."""

import http.client
import json
import os
import signal
import socket
import stat
from pathlib import Path

import common
from common import suite
from serving import JSON, LONG, SLOW, Reply, Server, not_ready, together
from test_serve import QUESTION, Served, streamed


class Clients(Served):
    options = ("--threads", 2, "--parallel", 8, *SLOW)

    def begin(self, **fields):
        """A connection on which an answer has begun to come."""
        connection = self.server.connect()
        body = {"prompt": "Once upon"} | LONG | fields
        connection.request("POST", "/v1/completions", json.dumps(body), JSON)
        return connection

    def running(self):
        return lambda m: m["tern_answers_running"] + m["tern_answers_waiting"] > 0

    def idle(self):
        return lambda m: m["tern_answers_running"] + m["tern_answers_waiting"] == 0

    def test_who_left_is_not_answered(self):
        for fields in ({}, {"stream": False}, {"n": 8}):
            before = self.server.metrics()['tern_answers_total{end="cancelled"}']
            connection = self.begin(**fields)
            self.server.wait_for(self.running())
            connection.close()
            self.server.wait_for(self.idle())
            cancelled = self.server.metrics()['tern_answers_total{end="cancelled"}'] - before
            self.assertEqual(cancelled, fields.get("n", 1))

    def test_who_waits_and_leaves(self):
        connections = [self.begin(n=8) for _ in range(3)]
        self.server.wait_for(lambda m: m["tern_answers_waiting"] >= 8)
        for connection in connections:
            connection.close()
        self.server.wait_for(self.idle())
        self.assertEqual(self.server.chat(QUESTION).status, 200)

    def test_those_who_stay_get_their_answers(self):
        fields = {"prompt": "Once upon", "max_tokens": 60, "temperature": 1.0, "seed": 3, "stream": True}
        alone = streamed(self.server.post("/v1/completions", **fields).events())

        def leave():
            connection = self.begin()
            connection.getresponse().readline()
            connection.close()

        replies = together([lambda: self.server.post("/v1/completions", **fields), leave, leave,
                            lambda: self.server.post("/v1/completions", **fields), leave])
        for i in (0, 3):
            self.assertEqual(streamed(replies[i].events()), alone)


class HalfClosed(Served):
    options = SLOW

    def test_who_sends_no_more_is_answered(self):
        """The answer comes long after the client has ended its side."""
        for stream in (False, True):
            fields = {"prompt": "Once upon", "max_tokens": 200, "ignore_eos": True, "temperature": 0, "stream": stream}
            alone = self.server.post("/v1/completions", **fields)
            body = json.dumps(fields).encode()
            with self.server.socket() as sock:
                sock.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                             b"Connection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
                sock.shutdown(socket.SHUT_WR)
                response = http.client.HTTPResponse(sock)
                response.begin()
                reply = Reply(response)
            with self.subTest(stream=stream):
                self.assertEqual(reply.status, 200)
                if stream:
                    self.assertEqual(streamed(reply.events()), streamed(alone.events()))
                else:
                    self.assertEqual(reply.json()["tern"]["digest"], alone.json()["tern"]["digest"])


class SlowReaders(common.FolderTest):
    def test_who_does_not_read_is_cancelled(self):
        """A socket in the file system holds little, so the server's own bound is met."""
        common.small_model()
        path = str(self.dir / "socket")
        with Server("--parallel", 16, unix=path) as server:
            self.assertEqual(server.greeting[0], f"serving tern-small at unix:{path}\n")
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode) & 0o077, 0)
            connection = server.connect()
            body = {"prompt": "Once upon", "n": 16, "logprobs": 20} | LONG
            connection.request("POST", "/v1/completions", json.dumps(body), JSON)
            server.wait_for(lambda m: m['tern_answers_total{end="cancelled"}'] > 0)
            server.wait_for(lambda m: m["tern_answers_running"] == 0)
            self.assertEqual(server.chat(QUESTION).status, 200)
            connection.close()
            self.assertEqual(server.stop(), 0)
        self.assertFalse(Path(path).exists())

    def test_a_socket_that_was_left(self):
        common.small_model()
        path = str(self.dir / "left")
        server = Server(unix=path)
        server.process.kill()
        server.stop()
        self.assertTrue(Path(path).exists())
        with Server(unix=path) as server:
            self.assertEqual(server.get("/health").status, 200)
            result = common.tern("serve", "--unix", path)
            self.assert_one_line_error(result, contains=(path,))
            self.assertEqual(server.get("/health").status, 200)


class TheEnd(common.TernTest):
    def begin(self, server, **fields):
        connection = server.connect()
        self.addCleanup(connection.close)
        body = {"prompt": "Once upon", "n": 4} | LONG | fields
        connection.request("POST", "/v1/completions", json.dumps(body), JSON)
        response = connection.getresponse()
        response.readline()
        return response

    def setUp(self):
        common.small_model()

    def test_answers_under_way_are_finished(self):
        with Server("--drain", 86400, *SLOW) as server:
            response = self.begin(server)
            server.signal(signal.SIGTERM)
            ready = suite.until(lambda: not_ready(server))
            self.assertEqual(ready.status, 503)
            self.assertGreaterEqual(int(ready.headers["retry-after"]), 1)
            self.assertEqual(server.get("/health").status, 200)
            self.assertEqual(server.chat(QUESTION).status, 503)
            self.assertTrue(response.read().endswith(b"data: [DONE]\n\n"))
            self.assertEqual(server.process.wait(), 0)

    def test_answers_that_take_too_long_are_told(self):
        with Server("--drain", 0, *SLOW) as server:
            response = self.begin(server)
            whole = server.connect()
            self.addCleanup(whole.close)
            whole.request("POST", "/v1/completions", json.dumps({"prompt": "Once upon", "n": 4} | LONG | {"stream": False}), JSON)
            server.wait_for(lambda m: m["tern_answers_running"] + m["tern_answers_waiting"] == 8)
            server.signal(signal.SIGTERM)
            last = response.read().strip().rsplit(b"\n\n", 1)[-1]
            self.assertEqual(json.loads(last.removeprefix(b"data: "))["error"]["type"], "unavailable_error")
            self.assertEqual(whole.getresponse().status, 503)
            self.assertEqual(server.process.wait(), 0)

    def test_a_second_signal_ends_at_once(self):
        with Server(*SLOW) as server:
            self.begin(server, n=16)
            server.signal(signal.SIGTERM)
            suite.until(lambda: not_ready(server))
            server.signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(), -signal.SIGTERM)

    def test_addresses_that_cannot_be(self):
        with Server() as server:
            self.assertEqual(server.host, "127.0.0.1")
            self.assert_one_line_error(common.tern("serve", "--port", server.port), contains=(str(server.port),))
        self.assert_one_line_error(common.tern("serve", "--host", "no.such.host.invalid"), contains=("no.such.host",))
        self.assert_one_line_error(common.tern("serve", "--unix", "/" + "x" * 200), contains=("bytes",))


if __name__ == "__main__":
    common.main()
