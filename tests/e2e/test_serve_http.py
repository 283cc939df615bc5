# SPDX-License-Identifier: Apache-2.0
"""tern serve as an HTTP server: framing, limits, keys."""

import json
import tempfile
from pathlib import Path

import common
from serving import JSON, LONG, SLOW, Server
from test_serve import QUESTION, Served

HOST = "Host: localhost\r\n"
BODY = b'{"messages": [{"role": "user", "content": "What is 2+2?"}]}'


def post(*lines, body=b"", path="/v1/chat/completions"):
    """The bytes of a request."""
    head = f"POST {path} HTTP/1.1\r\n{HOST}Content-Type: application/json\r\n"
    return head.encode() + "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + body


class Framing(Served):
    def status(self, request):
        reply = self.server.raw(request)
        self.assertRegex(reply, rb"^HTTP/1\.1 \d\d\d ")
        return int(reply.split()[1])

    def test_sound_requests(self):
        self.assertEqual(self.status(post(f"Content-Length: {len(BODY)}", body=BODY)), 200)
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in (BODY[:9], BODY[9:])) + b"0\r\n\r\n"
        self.assertEqual(self.status(post("Transfer-Encoding: chunked", body=chunks)), 200)

    def test_what_two_readers_could_frame_differently(self):
        n = len(BODY)
        chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (n, BODY)
        for lines, body in (
            ([f"Content-Length: {n}", "Transfer-Encoding: chunked"], chunked),
            (["Transfer-Encoding: chunked", f"Content-Length: {n}"], chunked),
            ([f"Content-Length: {n}", f"Content-Length: {n}"], BODY),
            ([f"Content-Length: {n}", "Content-Length: 3"], BODY),
            ([f"Content-Length: {n}, {n}"], BODY),
            ([f"Content-Length: +{n}"], BODY),
            (["Content-Length: -1"], BODY),
            (["Content-Length: 0x10"], BODY),
            (["Content-Length: 99999999999999999999"], BODY),
            (["Transfer-Encoding: gzip"], BODY),
            (["Transfer-Encoding: gzip, chunked"], chunked),
            (["Transfer-Encoding: chunked, chunked"], chunked),
            (["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], chunked),
            (["Transfer-Encoding: identity"], BODY),
            (["Transfer-Encoding : chunked"], chunked),
            (["Transfer\tEncoding: chunked"], chunked),
        ):
            with self.subTest(lines=lines):
                reply = self.server.raw(post(*lines, body=body + post(f"Content-Length: {n}", body=BODY)))
                statuses = [line for line in reply.split(b"\r\n") if b"HTTP/1.1 " in line]
                self.assertTrue(statuses, reply)
                self.assertTrue(all(line.startswith(b"HTTP/1.1 4") for line in statuses), reply)
                self.assertNotIn(b"choices", reply)  # what follows is not a second request
        self.assertEqual(self.server.chat(QUESTION).status, 200)

    def test_a_connection_is_kept(self):
        connection = self.server.connect()
        self.addCleanup(connection.close)
        ports = []
        for _ in range(3):
            connection.request("POST", "/v1/chat/completions", BODY, JSON)
            self.assertEqual(json.loads(connection.getresponse().read())["choices"][0]["finish_reason"], "stop")
            ports.append(connection.sock.getsockname())
        connection.request("POST", "/nothing", b"{}", JSON)
        self.assertEqual(connection.getresponse().read()[:9], b'{"error":')
        ports.append(connection.sock.getsockname())
        self.assertEqual(len(set(ports)), 1)

    def test_routes_methods_types(self):
        self.refused(self.server.get("/v1/nothing"), 404)
        self.assertEqual(self.server.get("/v1").body, self.server.get("/").body)  # the address in the greeting
        reply = self.server.get("/v1/chat/completions")
        self.refused(reply, 405)
        self.assertEqual(reply.headers["allow"], "OPTIONS, POST")
        self.refused(self.server.ask("POST", "/health", {}), 405)
        for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonx"):
            self.refused(self.server.ask("POST", "/v1/completions", BODY, {"Content-Type": kind}), 415)
        kind = {"Content-Type": "application/json; charset=utf-8"}
        self.assertEqual(self.server.ask("POST", "/v1/chat/completions", BODY, kind).status, 200)
        self.assertEqual(self.server.ask("HEAD", "/health").status, 200)

    def test_paths_are_names_and_nothing_else(self):
        for path in ("/../etc/passwd", "/v1/models/../../x", "/%2e%2e/x", "/v1/models/%s%n", "//health"):
            self.assertEqual(self.server.get(path).status, 404, path)

    def test_bodies_that_are_too_long(self):
        self.assertEqual(self.status(post(f"Content-Length: {(16 << 20) + 1}")), 413)
        piece = b"%x\r\n%s\r\n" % (1 << 20, b" " * (1 << 20))
        self.assertEqual(self.status(post("Transfer-Encoding: chunked", body=17 * piece + b"0\r\n\r\n")), 413)
        fits = b" " * (15 << 20) + BODY
        self.assertEqual(self.status(post(f"Content-Length: {len(fits)}", body=fits)), 200)

    def test_headers_that_are_too_long(self):
        status = self.status(post(*[f"X-{i}: {'x' * 1000}" for i in range(100)]))
        self.assertIn(status, (400, 413, 414, 431, 494))
        self.assertEqual(self.server.get("/health").status, 200)

    def test_long_lines_of_a_header(self):
        """A header of up to 64 KiB is accepted, and so are cookies, which the library reads a second time; beyond that
        the client is told why."""
        for name in ("Cookie", "X-Long"):
            for size, status in ((30000, 200), (60000, 200), (65000, 200), (66000, 431), (100000, 431)):
                with self.subTest(name=name, size=size):
                    reply = self.server.get("/health", **{name: "a=" + "x" * size})
                    self.assertEqual(reply.status, status)
                    if status == 431:
                        self.assertIn("longer than 65536 bytes", reply.json()["error"]["message"])
        cookies = "; ".join(f"c{i}=v" for i in range(1000))
        self.assertEqual(self.server.get("/health", Cookie=cookies).status, 200)

    def test_options(self):
        """The answer lists the methods of a path; asking needs no key."""
        with Server(env={"TERN_API_KEY": "one"}) as server:
            for path, methods in (("/v1/completions", "OPTIONS, POST"), ("/health", "OPTIONS, GET, HEAD"), ("/v1/models/x", "OPTIONS, GET, HEAD")):
                reply = server.ask("OPTIONS", path)
                self.assertEqual((reply.status, reply.headers["allow"], reply.body), (204, methods, b""))
            self.refused(server.ask("OPTIONS", "/nothing"), 404)

    def test_pages_of_other_origins_hear_nothing(self):
        headers = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
        for reply, status in ((self.server.get("/health", **headers), 403), (self.server.ask("OPTIONS", "/v1/completions", None, headers), 204)):
            self.assertEqual(reply.status, status)
            self.assertEqual([name for name in reply.headers if name.startswith("access-control")], [])
        with Server("--cors", "https://example.org") as server:
            reply = server.ask("OPTIONS", "/v1/completions", None, headers)
            self.assertEqual(reply.status, 204)
            allowed = reply.headers["access-control-allow-headers"].split(", ")
            self.assertEqual(set(allowed), {"Authorization", "Content-Type", "x-api-key", "api-key", "*"})
            self.assertEqual(server.ask("OPTIONS", "/nothing", None, headers).status, 204)  # the page may read the 404
            self.assertIn("X-Tern-Digest", server.chat(QUESTION).headers["access-control-expose-headers"])
            for reply in (reply, server.get("/health"), server.chat(QUESTION)):
                self.assertEqual(reply.headers["access-control-allow-origin"], "https://example.org")

    def test_health_while_the_engine_works(self):
        with Server("--threads", 2, *SLOW) as server:
            connection = server.connect()
            self.addCleanup(connection.close)
            body = {"prompt": "Once upon", "n": 8} | LONG
            connection.request("POST", "/v1/completions", json.dumps(body), JSON)
            connection.getresponse().readline()
            for _ in range(10):
                self.assertEqual(server.get("/health").status, 200)
            self.assertGreater(server.metrics()["tern_answers_running"], 0)


class Gate(Served):
    """A browser does what other sites' pages tell it to: where no key is asked for, the server checks names and
    pages."""

    def code(self, reply, status):
        self.refused(reply, status)
        return reply.json()["error"]["code"]

    def every_route(self):
        for path in ("/", "/page/main.js", "/health", "/v1/models", "/props", "/metrics", "/nothing"):
            yield lambda path=path, **headers: self.server.get(path, **headers)
        yield lambda **headers: self.server.ask("POST", "/v1/chat/completions", BODY, JSON | headers)
        yield lambda **headers: self.server.ask("POST", "/tokenize", {"content": "x"}, JSON | headers)
        yield lambda **headers: self.server.ask("DELETE", "/v1/models", None, headers)

    def test_names_that_lead_here(self):
        port = self.server.port
        for ask in self.every_route():
            for host in (f"evil.example:{port}", f"127.0.0.1.evil.example:{port}", f"localhost.evil:{port}", "10.0.0.1"):
                self.assertEqual(self.code(ask(Host=host), 403), "host_not_allowed")
        self.assertEqual(self.code(self.server.ask("OPTIONS", "/v1/models", None, {"Host": "evil.example"}), 403), "host_not_allowed")
        for host in (f"localhost:{port}", "LocalHost.", f"tern.localhost:{port}", "127.0.0.2", "[::1]:81"):
            self.assertEqual(self.server.ask("POST", "/v1/chat/completions", BODY, JSON | {"Host": host}).status, 200, host)
        self.assertIn(b"200 OK", self.server.raw(b"GET /health HTTP/1.0\r\n\r\n"))

    def test_pages_of_elsewhere(self):
        own = f"http://127.0.0.1:{self.server.port}"
        for ask in self.every_route():
            for origin in ("http://evil.example", "null", f"{own}.evil.example", f"{own}@evil.example", own[:-1], "http://127.0.0.1"):
                self.assertEqual(self.code(ask(Origin=origin), 403), "origin_not_allowed")
        for origin in (own, own.upper()):
            self.assertEqual(self.server.ask("POST", "/v1/chat/completions", BODY, JSON | {"Origin": origin}).status, 200)

    def test_hosts_that_are_none(self):
        for lines in ("", "Host: a\r\nHost: a\r\n", "Host: localhost\r\nhost: evil\r\n", "Host: user@localhost\r\n", "Host:\r\n",
                      "Host: localhost:x\r\n", "Host: localhost:99999\r\n", "Host: [::1\r\n", "Host: localhost/\r\n",
                      "Host: localhost, evil\r\n", "Host: localhost\r\nOrigin: null\r\nOrigin: null\r\n"):
            reply = self.server.raw(f"GET /health HTTP/1.1\r\n{lines}\r\n".encode())
            self.assertTrue(reply.startswith(b"HTTP/1.1 400 "), (lines, reply))
        for place, status in (("http://localhost/health", 200), ("http://localhost:80/health", 200), ("http://LOCALHOST?x", 200),
                              ("http://evil.example/health", 400), ("http://localhost@evil/health", 400), ("https://localhost/health", 200),
                              ("http://localhost:81/health", 400), ("ftp://localhost/health", 400)):
            reply = self.server.raw(f"GET {place} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            self.assertTrue(reply.startswith(b"HTTP/1.1 %d " % status), (place, reply))

    def test_names_that_are_allowed(self):
        allowed = {"TERN_ALLOWED_HOSTS": "models.example.org,10.0.0.5:81"}
        for options, env in (((), allowed), (("--allowed-host", "models.example.org", "--allowed-host", "x,10.0.0.5:81"), {})):
            with Server(*options, env=env) as server:
                for host, status in (("models.example.org", 200), ("models.example.org:444", 200), ("10.0.0.5:81", 200),
                                     ("10.0.0.5:82", 403), ("evil.example", 403), ("localhost", 200)):
                    self.assertEqual(server.get("/props", Host=host).status, status, host)
                proxied = {"Origin": "https://models.example.org"}
                self.assertEqual(server.ask("POST", "/v1/chat/completions", BODY, JSON | proxied).status, 200)
        with Server("--allowed-host", "*") as server:
            self.assertEqual(server.get("/props", Host="evil.example").status, 200)
            self.assertEqual(server.get("/props", Origin="http://evil.example").status, 403)
        for wrong in ("http://x", "x/", "a b", "x,,y", ""):
            self.assert_one_line_error(common.tern("serve", "--allowed-host", wrong), status=2, contains=("--allowed-host",))

    def test_pages_that_are_allowed(self):
        for cors, taken in (("https://app.example", ("https://app.example",)), ("*", ("http://evil.example", "null")), ("null", ("null",))):
            with Server("--cors", cors) as server:
                for origin in taken:
                    self.assertEqual(server.ask("POST", "/v1/chat/completions", BODY, JSON | {"Origin": origin}).status, 200)
                if cors != "*":
                    self.assertEqual(server.get("/props", Origin="https://app.example.evil").status, 403)

    def test_other_addresses(self):
        with Server("--host", "0.0.0.0") as server:
            for host, status in (("192.168.3.4:8080", 200), ("box", 200), ("box.local", 200), ("evil.example", 403)):
                self.assertEqual(server.get("/props", Host=host).status, status, host)
        with tempfile.TemporaryDirectory() as folder, Server(unix=str(Path(folder, "s"))) as server:
            self.assertEqual(server.get("/props", Host="anything.example").status, 200)
            self.assertEqual(server.get("/props", Origin="http://evil.example").status, 403)

    def test_a_key_decides_where_there_is_one(self):
        with Server(env={"TERN_API_KEY": "one"}) as server:
            elsewhere = {"Host": "models.example.org", "Origin": "http://evil.example"}
            self.assertEqual(server.ask("GET", "/props", None, elsewhere).status, 401)
            self.assertEqual(server.ask("GET", "/props", None, elsewhere | {"x-api-key": "one"}).status, 200)
            self.assertEqual(server.get("/", Host="user@x").status, 400)


class Keys(common.FolderTest):
    def test_keys(self):
        path = self.dir / "keys.txt"
        path.write_text("# for the team\r\nalice\tkey-of-alice\n\n  # the second\nkey-of-nobody\n")
        with Server("--api-key-file", path, "--access-log", env={"TERN_API_KEY": "one,two"}) as server:
            self.assertIn("a key is needed", server.greeting[1])
            for key in ("key-of-alice", "key-of-nobody", "one", "two"):
                self.assertEqual(server.ask("POST", "/v1/chat/completions", BODY, {"Authorization": f"Bearer {key}"} | JSON).status, 200, key)
            self.assertEqual(server.ask("GET", "/props", None, {"x-api-key": "two"}).status, 200)
            for headers in ({}, {"Authorization": "Bearer nine"}, {"Authorization": "Bearer "}, {"Authorization": "one"},
                            {"Authorization": "Bearer one,two"}, {"x-api-key": "key-of-alic"}, {"x-api-key": "alice"}):
                reply = server.ask("POST", "/v1/chat/completions", BODY, headers | JSON)
                self.assertEqual((reply.status, reply.json()["error"]["code"]), (401, "invalid_api_key"), headers)
                self.assertEqual(reply.headers["www-authenticate"], "Bearer")
            self.assertEqual([server.get(p).status for p in ("/health", "/ready", "/v1/models", "/props", "/metrics")], [200, 200, 200, 401, 401])
            server.stop()
            log = server.log()
            self.assertIn(" alice POST /chat/completions 200 ", log)
            self.assertNotIn("key-of", log)
            self.assertNotIn("2+2", log)

    def test_pages_are_shared_under_one_key_alone(self):
        fields = {"prompt": "Luna the panda " * 20, "max_tokens": 4}
        with Server(env={"TERN_API_KEY": "one,two"}) as server:
            def ask(key):
                reply = server.ask("POST", "/v1/completions", fields, {"x-api-key": key}).json()
                return reply["usage"]["prompt_tokens_details"]["cached_tokens"], reply["tern"]["digest"]

            cached, digests = zip(*[ask(key) for key in ("one", "one", "two", "two")])
            self.assertEqual((cached[0], cached[2]), (0, 0))
            self.assertGreater(min(cached[1], cached[3]), 0)
            self.assertEqual(len(set(map(tuple, digests))), 1)

    def test_files_that_hold_no_keys(self):
        for text, wrong in (("", "no key"), ("# x\n\n", "no key"), ("a b c\n", "line 1"), (f"{'l' * 32} key\n", "line 1"),
                            ("# x\nalice #s3cr3t\n", "line 2"), ("a s3cr3t\nb s3cr3t\n", "line 2"), ("a s3\0cr3t\n", "line 1")):
            path = self.dir / "wrong.txt"
            path.write_text(text)
            result = common.tern("serve", "--port", 0, "--api-key-file", path)
            self.assert_one_line_error(result, contains=(wrong, str(path)))
            self.assertNotIn(b"cr3t", result.stderr)
        self.assert_one_line_error(common.tern("serve", "--port", 0, "--api-key", "a,,b"), status=2, contains=("--api-key",))


class Limits(Served):
    options = ("--parallel", 1, "--queue", 2, *SLOW)

    def test_a_full_queue(self):
        connections = []
        for waiting in (0, 1, 2):
            connection = self.server.connect()
            self.addCleanup(connection.close)
            connection.request("POST", "/v1/completions", json.dumps({"prompt": "Once upon"} | LONG), JSON)
            connections.append(connection)
            self.server.wait_for(lambda m, n=waiting: m["tern_answers_running"] == 1 and m["tern_answers_waiting"] == n)
        reply = self.server.chat(QUESTION)
        self.assertEqual(self.refused(reply, 429)["code"], "queue_full")
        self.assertGreaterEqual(int(reply.headers["retry-after"]), 1)
        self.assertEqual(self.server.get("/health").status, 200)
        for connection in connections:
            connection.close()
        self.server.wait_for(lambda m: m["tern_answers_running"] + m["tern_answers_waiting"] == 0)
        self.assertEqual(self.server.chat(QUESTION).status, 200)
        self.refused(self.server.chat(QUESTION, n=3), 400, "n")


if __name__ == "__main__":
    common.main()
