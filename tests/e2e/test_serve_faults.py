# SPDX-License-Identifier: Apache-2.0
"""Tests of tern serve when things go wrong: requests that are not HTTP, slow clients, clocks that jump, the end under
load."""

import json
import shutil
import signal
import socket
import subprocess
import threading
import time

import common
from common import suite
from serving import JSON, LONG, Server, not_ready
from test_serve import QUESTION, Served, streamed

BODY = b'{"prompt": "Once upon", "max_tokens": 4, "temperature": 0}'
HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
QUICK = ("--idle-timeout", 1, "--request-timeout", 1)


def chunks(*sizes_and_data):
    return b"".join(b"%s\r\n%s\r\n" % pair for pair in sizes_and_data) + b"0\r\n\r\n"


class Malformed(Served):
    def statuses(self, request):
        """Those of all replies to some bytes, after which the client closes its side."""
        sock = self.server.socket()
        received = b""
        try:
            sock.sendall(request)
            while piece := sock.recv(65536):
                received += piece
                if b"\r\n0\r\n\r\n" in received[-7:] or self.is_whole(received):
                    break
        except ConnectionError:
            pass
        finally:
            sock.close()
        return [int(line.split()[1]) for line in received.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]

    @staticmethod
    def is_whole(received):
        head, found, body = received.partition(b"\r\n\r\n")
        length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        return bool(found and length) and len(body) >= int(length[0][15:])

    def test_requests_that_are_none(self):
        """The request is refused, or the connection is closed: the answer is never 200 or 5xx, and the next client is
        served."""
        n = len(BODY)
        length = b"Content-Length: %d\r\n" % n
        coding = b"Transfer-Encoding: chunked\r\n"
        corpus = {
            "nothing": b"\r\n\r\n",
            "noise": bytes(range(256)) * 8 + b"\r\n\r\n",
            "TLS": bytes.fromhex("16030100c8010000c40303") + b"a" * 200 + b"\r\n\r\n",
            "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "no version": b"GET /health\r\nHost: localhost\r\n\r\n",
            "another version": b"GET /health HTTP/3.1\r\nHost: localhost\r\n\r\n",
            "no method": b" /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "an unknown method": b"FETCH /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "no colon": b"GET /health HTTP/1.1\r\nHost a\r\n\r\n",
            "a blank before the colon": HEAD + b"Content-Length : %d\r\n\r\n" % n + BODY,
            "a NUL in a name": HEAD + length + b"X\0Y: b\r\n\r\n" + BODY,
            "a NUL in a path": b"GET /hea\0lth HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "a NUL in a path, escaped": b"GET /health%00x HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "a NUL in a body": HEAD + b"Content-Length: 18\r\n\r\n" + b'{"prompt": "a\0bc"}',
            "no UTF-8 in a body": HEAD + b"Content-Length: 16\r\n\r\n" + b'{"prompt": "\xff"}' + b" ",
            "half a character": HEAD + b"Content-Length: 16\r\n\r\n" + b'{"prompt": "\xc3"}' + b" ",
            "a long path": b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "a long header": b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100000 + b"\r\n\r\n",
            "many headers": b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 20000 + b"\r\n",
            "length and coding": HEAD + length + coding + b"\r\n" + chunks((b"%x" % n, BODY)),
            "two lengths": HEAD + length + length + b"\r\n" + BODY,
            "a chunk without a size": HEAD + coding + b"\r\n" + chunks((b"", BODY)),
            "a chunk with another size": HEAD + coding + b"\r\n" + chunks((b"%x" % (n - 3), BODY)),
            "a negative chunk": HEAD + coding + b"\r\n" + chunks((b"-%x" % n, BODY)),
            "an endless chunk": HEAD + coding + b"\r\n" + chunks((b"ffffffffffffffffff", BODY)),
            "a chunk with a sign": HEAD + coding + b"\r\n" + chunks((b"0x%x" % n, BODY)),
        }
        for name, request in corpus.items():
            with self.subTest(name):
                found = self.statuses(request)
                self.assertTrue(all(400 <= status < 500 or status in (501, 505) for status in found), found)
        self.assertEqual(self.server.chat(QUESTION).status, 200)
        self.assertEqual(self.server.metrics()["tern_cache_pages_used"], 0)

    def test_forms_that_are_sound(self):
        length = b"Content-Length: %d\r\n\r\n" % len(BODY)
        for name, request in {
            "HTTP/1.0": HEAD.replace(b"1.1", b"1.0") + length + BODY,
            "an absolute address": HEAD.replace(b"/v1", b"http://localhost/v1") + length + BODY,
            "a lower case name": HEAD.replace(b"Content-Type", b"content-type") + length + BODY,
            "a question": HEAD.replace(b"completions", b"completions?a=b") + length + BODY,
        }.items():
            with self.subTest(name):
                self.assertEqual(self.statuses(request), [200])

    def test_a_chunk_with_an_extension(self):
        """It is passed over."""
        request = HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks((b"%x;a=b" % len(BODY), BODY))
        self.assertEqual(self.statuses(request), [200])

    def test_a_body_that_waits_to_be_asked_for(self):
        sock = self.server.socket()
        self.addCleanup(sock.close)
        sock.sendall(HEAD + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(BODY))
        self.assertTrue(sock.recv(100).startswith(b"HTTP/1.1 100 "))
        sock.sendall(BODY)
        self.assertTrue(sock.recv(100).startswith(b"HTTP/1.1 200 "))
        sock = self.server.socket()
        self.addCleanup(sock.close)
        sock.sendall(HEAD + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % (1 << 30))
        self.assertTrue(sock.recv(100).startswith(b"HTTP/1.1 413 "))

    def test_requests_one_after_another_without_waiting(self):
        """Each gets its own reply, in order."""
        asked = [{"prompt": "Once upon", "max_tokens": n, "temperature": 0, "ignore_eos": True} for n in (5, 2, 7)]
        alone = [self.server.post("/v1/completions", **fields).json()["tern"]["digest"] for fields in asked]
        sock = self.server.socket()
        self.addCleanup(sock.close)
        for fields in asked:
            body = json.dumps(fields).encode()
            sock.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        received = b""
        while received.count(b'"ignored"') < 3:
            received += sock.recv(65536)
        bodies = [part.partition(b"\r\n\r\n")[2] for part in received.split(b"HTTP/1.1 200 OK")[1:]]
        self.assertEqual([json.loads(body)["tern"]["digest"] for body in bodies], alone)


class Slow(common.FolderTest):
    """The server has limits of seconds in place of minutes."""

    def wait_for_the_end(self, sock, feed):
        """The server ends a connection to which `feed` is sent byte by byte."""
        sock.settimeout(0.2)
        while True:
            try:
                sock.sendall(feed)
                if sock.recv(4096) == b"":
                    return
            except TimeoutError:
                continue
            except ConnectionError:
                return

    def wait_for_an_answer(self, server):
        """Waits for an answer to a client whose request no pause of this machine has cut."""
        suite.until(lambda: server.chat(QUESTION).status == 200)

    def setUp(self):
        common.small_model()

    def test_slow_headers_bodies_and_silence(self):
        with Server(*QUICK) as server:
            for begin, feed in ((b"", b""), (b"GET /health HTTP/1.1\r\n", b""), (b"GET /health HTTP/1.1\r\nX: ", b"a"),
                                (HEAD + b"Content-Length: 100000\r\n\r\n", b""),
                                (HEAD + b"Content-Length: 100000\r\n\r\n", b" "),
                                (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
                                (HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY[:9], b"")):
                with self.subTest(begin=begin[-30:], feed=feed):
                    sock = server.socket()
                    sock.sendall(begin)
                    self.wait_for_the_end(sock, feed)
                    sock.close()
            self.wait_for_an_answer(server)

    def test_an_idle_connection_ends(self):
        """After --idle-timeout alone, before its first request and after an answer, and not after the 60 seconds
        that count without the option."""
        with Server("--idle-timeout", 1, "--request-timeout", 3600) as server:
            for begin in (b"", b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"):
                with self.subTest(begin=begin):
                    sock, began = server.socket(), time.monotonic()
                    sock.sendall(begin)
                    self.wait_for_the_end(sock, b"")
                    sock.close()
                    self.assertLess(time.monotonic() - began, 60)

    def read_slowly(self, server, **fields):
        """Reads a byte now and then until the server has ended it."""
        sock = server.socket()
        self.addCleanup(sock.close)
        body = json.dumps({"prompt": "Once upon", "n": 16, "logprobs": 20, "ignore_eos": True, "max_tokens": 100} | fields).encode()
        sock.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        n = 0
        try:
            while piece := sock.recv(1 if n < 400 else 1 << 20):
                n += len(piece)
                time.sleep(0.02 if n < 400 else 0)
        except ConnectionError:
            pass

    def test_who_reads_slowly_is_not_waited_for(self):
        """A whole reply and a stream are longer than a socket holds; both are dropped, and others are served."""
        with Server(*QUICK, "--parallel", 16, unix=str(self.dir / "slow")) as server:
            for stream in (False, True):
                with self.subTest(stream=stream):
                    self.read_slowly(server, stream=stream)
                    server.wait_for(lambda m: m["tern_answers_running"] == 0)
            self.wait_for_an_answer(server)

    def test_who_reads_late_gets_all_of_it(self):
        """Text that piles up in the server while nobody reads is sent whole and in order."""
        fields = {"prompt": "Once upon", "n": 8, "logprobs": 10, "ignore_eos": True, "max_tokens": 60, "seed": 5,
                  "temperature": 1, "stream": True}
        with Server("--parallel", 8, unix=str(self.dir / "late")) as server:
            alone = server.post("/v1/completions", **fields)
            self.assertGreater(len(alone.body), 200000)
            connection = server.connect()
            self.addCleanup(connection.close)
            connection.request("POST", "/v1/completions", json.dumps(fields), JSON)
            server.wait_for(lambda m: m['tern_answers_total{end="length"}'] >= 16)
            body = connection.getresponse().read().decode()
            events = [json.loads(block[6:]) for block in body.split("\n\n")[:-2]]
            self.assertTrue(body.endswith("data: [DONE]\n\n"))
            self.assertEqual(streamed(events), streamed(alone.events()))
            self.assertEqual(events[-1]["tern"]["digest"], alone.events()[-1]["tern"]["digest"])

    def test_silent_streams_are_pinged(self):
        """A stream is pinged while its answer waits for its turn."""
        with Server("--parallel", 1, "--ping", 0.01) as server:
            first, second = server.connect(), server.connect()
            for connection in (first, second):
                self.addCleanup(connection.close)
                connection.request("POST", "/v1/completions", json.dumps({"prompt": "Once upon", "n": 64} | LONG), JSON)
                # Requests on two connections have no order: the second one is sent when the first has its turn.
                server.wait_for(lambda m: m["tern_answers_running"] == 1)
            response = second.getresponse()
            self.assertEqual(response.readline(), b": ping\n")
            self.assertEqual(response.readline(), b"\n")

    def test_a_pass_that_takes_too_long(self):
        with Server("--stalled", 0.000001) as server:
            connection = server.connect()
            self.addCleanup(connection.close)
            connection.request("POST", "/v1/completions", json.dumps({"prompt": "Once upon", "n": 16} | LONG), JSON)
            reply = suite.until(lambda: not_ready(server))
            self.assertEqual(reply.status, 503)
            self.assertIn("a pass has taken", reply.json()["error"]["message"])
            self.assertEqual(server.get("/health").status, 200)
            connection.close()
            server.wait_for(lambda m: m["tern_answers_running"] + m["tern_answers_waiting"] == 0)
            self.assertEqual(server.get("/ready").status, 200)


class Signals(common.TernTest):
    def setUp(self):
        common.small_model()

    def test_the_end_under_load(self):
        """Every stream ends with [DONE] or is told that the server ends; every whole reply is whole, or a 503."""
        outcomes, began = [], threading.Barrier(13)

        def ask(server, stream):
            body = {"prompt": "Once upon", "max_tokens": -1, "ignore_eos": True, "stream": stream}
            connection = server.connect()
            connection.request("POST", "/v1/completions", json.dumps(body), JSON)
            began.wait()
            response = connection.getresponse()
            outcomes.append((stream, response.status, response.read()))
            connection.close()

        for drain in (0, 86400):
            with self.subTest(drain=drain), Server("--drain", drain, "--parallel", 8) as server:
                outcomes.clear()
                threads = [threading.Thread(target=ask, args=(server, i % 2 == 0)) for i in range(12)]
                for thread in threads:
                    thread.start()
                began.wait()
                taken = 1 if drain == 0 else 12  # text that was not read yet would be refused
                server.wait_for(lambda m, n=taken: m["tern_requests_total"] >= n)
                server.signal(signal.SIGTERM)
                for thread in threads:
                    thread.join()
                self.assertEqual(server.process.wait(), 0)
                self.assertEqual(len(outcomes), 12)
                for stream, status, body in outcomes:
                    if stream:
                        last = body.strip().rsplit(b"\n\n", 1)[-1].removeprefix(b"data: ")
                        self.assertTrue(last == b"[DONE]" or json.loads(last)["error"]["type"] == "unavailable_error", body[-200:])
                    else:
                        self.assertIn(status, (200, 503) if drain == 0 else (200,))
                        self.assertEqual("choices" in json.loads(body), status == 200)

    def test_a_log_that_cannot_be_written(self):
        """A full disk for the access log and for the greeting does not end a server."""
        for log in ("stderr", "stdout"):
            with self.subTest(log), open("/dev/full", "w") as full:
                port = socket.create_server(("127.0.0.1", 0))
                number = port.getsockname()[1]
                port.close()
                process = subprocess.Popen(common.command("serve", "--port", number, "--access-log"),
                                           env=common.clean_environment(), stdin=subprocess.DEVNULL,
                                           **{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, log: full})
                try:
                    self.assertTrue(self.answers(number, process))
                finally:
                    process.terminate()
                    process.wait()

    @staticmethod
    def answers(port, process):
        while process.poll() is None:
            try:
                with socket.create_connection(("127.0.0.1", port)) as sock:
                    for _ in range(3):
                        sock.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                        if not sock.recv(4096).startswith(b"HTTP/1.1 200"):
                            return False
                    return True
            except OSError:
                time.sleep(0.05)
        return False


SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <sys/time.h>
static long long away(void) {
    static unsigned turn; /* without a period that the number of looks of an answer could have */
    static const long long jumps[] = {0, 86400, -86400LL * 365, 86400LL * 3650, -3600};
    return jumps[(__atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED) * 2654435761u >> 16) % 5];
}
int clock_gettime(clockid_t clock, struct timespec *t) {
    static int (*real)(clockid_t, struct timespec *);
    if (real == 0) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const int result = real(clock, t);
    if (clock == CLOCK_REALTIME) t->tv_sec += away();
    return result;
}
time_t time(time_t *out) {
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    if (out) *out = t.tv_sec;
    return t.tv_sec;
}
int gettimeofday(struct timeval *restrict t, void *restrict zone) {
    struct timespec now;
    (void)zone;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    t->tv_sec = now.tv_sec;
    t->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""


class Clocks(common.FolderTest):
    def test_the_clock_of_the_wall_jumps(self):
        """The clock jumps at every look, by a day, a year back or ten years on: nothing ends early, late or in another
        way."""
        common.small_model()
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            self.skipTest("no C compiler")
        source, shim = self.dir / "shim.c", self.dir / "shim.so"
        source.write_text(SHIM)
        subprocess.run([compiler, "-shared", "-fPIC", "-o", shim, source, "-ldl"], check=True)
        fields = {"prompt": "Once upon", "max_tokens": 200, "seed": 3, "temperature": 1, "ignore_eos": True}
        with Server() as server:
            alone = server.post("/v1/completions", **fields).json()
        with Server("--ping", 5, env={"LD_PRELOAD": str(shim), "ASAN_OPTIONS": "verify_asan_link_order=0"}) as server:
            created = [server.chat(QUESTION).json()["created"] for _ in range(5)]
            self.assertGreater(max(created) - min(created), 86400)  # the shim is at work
            connection = server.connect()
            self.addCleanup(connection.close)
            connection.request("GET", "/health")
            connection.getresponse().read()
            for stream in (False, True):
                reply = server.post("/v1/completions", stream=stream, **fields)
                document = reply.events()[-1] if stream else reply.json()
                self.assertEqual(document["tern"]["digest"], alone["tern"]["digest"])
            self.assertEqual(server.get("/ready").status, 200)
            connection.request("GET", "/health")  # it was kept
            self.assertEqual(connection.getresponse().status, 200)
            metrics = server.metrics()
            self.assertTrue(all(0 <= value < 1e6 for name, value in metrics.items() if "seconds_sum" in name), metrics)


if __name__ == "__main__":
    common.main()
