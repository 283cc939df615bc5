# SPDX-License-Identifier: Apache-2.0
"""tern serve and requests that ask for much: refused before work is done, counted by the server's own figures."""

import json
import signal

import common
from serving import JSON, Server
from test_serve import QUESTION, Served

MANY = 15 << 20  # bytes of a text; a body has at most 16 MiB
TEXT = 1 << 20  # of a text that is tokenized and not answered, with a small context
STOPS = 8192  # of all stop texts of a request
TOKENIZED = "tern_http_tokenized_bytes_total"


def words(size):
    return ("the cat and " * (size // 12 + 1))[:size]


class Limits(Served):
    def tokenized(self):
        return self.server.metrics()[TOKENIZED]

    def refused_unread(self, reply, status=400, code=None):
        """Refused, and the tokenizer was not asked."""
        error = reply.json()["error"]
        self.assertEqual((reply.status, error.get("code")), (status, code), error)
        self.assertEqual(self.tokenized(), self.before)
        return error

    def setUp(self):
        self.server.chat(QUESTION)
        self.before = self.tokenized()
        self.assertGreater(self.before, 0)

    def test_prompts_that_cannot_fit(self):
        """The bytes of a prompt say that it does not fit, in every form in which it can come."""
        long = words(MANY)
        message = {"role": "user", "content": long}
        code = "context_length_exceeded"
        for name, ask in {
            "text": lambda: self.server.complete(long),
            "texts": lambda: self.server.complete(["a b", long]),
            "native": lambda: self.server.post("/completion", prompt=long),
            "mixed": lambda: self.server.post("/completion", prompt=[1, long]),
            "chat": lambda: self.server.chat(long),
            "parts": lambda: self.server.chat([{"type": "text", "text": long[: MANY // 2]}] * 2),
            "response": lambda: self.server.post("/v1/responses", input=long),
        }.items():
            with self.subTest(name):
                error = self.refused_unread_but(ask(), code)
                self.assertGreater(error["n_prompt_tokens"], error["n_ctx"])
        reply = self.server.post("/v1/messages", messages=[message], max_tokens=1)
        self.assertEqual(reply.status, 400)
        self.assertLess(self.tokenized() - self.before, 1000)

    def refused_unread_but(self, reply, code):
        """Checks as refused_unread does, but allows for the short texts of a request, and of the template around the
        long one."""
        error = reply.json()["error"]
        self.assertEqual((reply.status, error["code"]), (400, code), error)
        self.assertLess(self.tokenized() - self.before, 1000)
        return error

    def test_texts_that_are_only_counted(self):
        long = words(TEXT + 1)
        chat = [{"role": "user", "content": long}]
        for path, fields in {
            "/tokenize": {"content": long},
            "/v1/tokenize": {"prompt": long},
            "/v1/chat/completions/input_tokens": {"messages": chat},
            "/v1/responses/input_tokens": {"input": long},
            "/v1/messages/count_tokens": {"messages": chat, "max_tokens": 1},
            "/apply-template": {"messages": chat},
        }.items():
            with self.subTest(path):
                reply = self.server.post(path, **fields)
                self.assertEqual(reply.status, 400)
                self.assertIn(f"{TEXT} bytes", reply.json()["error"]["message"])
        self.assertLess(self.tokenized() - self.before, 1000)
        self.assertEqual(self.server.post("/tokenize", content=words(TEXT)).status, 200)
        self.assertGreaterEqual(self.tokenized() - self.before, TEXT)

    def test_texts_of_biases(self):
        reply = self.server.post("/completion", prompt="a", logit_bias=[[words(MANY), 1]])
        self.refused_unread(reply)
        self.assertIn("at most 4096 tokens", reply.json()["error"]["message"])

    def test_stops(self):
        most = [chr(97 + i) * (STOPS // 16) for i in range(16)]
        self.assertEqual(self.server.complete("a", max_tokens=4, stop=most).status, 200)
        self.before = self.tokenized()
        most[3] += "x"
        for stop in (most, "x" * (STOPS + 1), "x" * MANY, ["x" * 900000] * 16):
            error = self.refused_unread(self.server.complete("a", max_tokens=4, stop=stop))
            self.assertEqual((error["param"], error["message"]), ("stop", "stop: texts have at most 8192 bytes together"))

    def test_replies(self):
        tokens = self.server.post("/tokenize", content="\x01 the").json()["tokens"]
        few = self.server.post("/detokenize", tokens=tokens * 10000)
        self.assertEqual(few.json()["content"], "\x01 the" * 10000)
        many = self.server.post("/detokenize", tokens=tokens * (TEXT // 3))
        self.assertEqual((many.status, many.json()["error"]["param"]), (400, "tokens"))
        pieces = self.server.post("/tokenize", content="\x01" * TEXT, with_pieces=True)
        self.assertEqual(pieces.status, 400)
        self.assertIn("the reply would be longer", pieces.json()["error"]["message"])

    def test_what_replies_repeat(self):
        ask = lambda **fields: self.server.post("/v1/responses", input="a", max_output_tokens=1, **fields)  # noqa: E731
        fine = {f"name{i}": "v" * 512 for i in range(16)}
        self.assertEqual(ask(metadata=fine).json()["metadata"], fine)
        for wrong in (fine | {"one": "more"}, {"a": "v" * 513}, {"n" * 65: "v"}, {"a": ["v"]}):
            self.assertEqual(self.refused_unread_but(ask(metadata=wrong), None)["param"], "metadata")
        self.assertEqual(self.refused_unread_but(ask(instructions=words(TEXT + 1)), None)["param"], "instructions")

    def test_names_that_mean_nothing(self):
        """Replies name the unknown fields, as many of them as are short."""
        fields = {f"nothing{i}" + "x" * 1000: 1 for i in range(5000)}
        reply = self.server.complete("a", max_tokens=1, short=1, **fields)
        self.assertEqual(reply.status, 200)
        self.assertLess(len(reply.body), 10000)
        self.assertIn("short", reply.json()["tern"]["ignored"])

    def test_a_client_that_has_left(self):
        """A waiting request is not read for a client that has left; others are served meanwhile."""
        body = json.dumps({"content": words(TEXT)})
        for _ in range(20):
            connection = self.server.connect()
            connection.request("POST", "/tokenize", body, JSON)
            connection.close()
        self.assertEqual(self.server.chat(QUESTION).status, 200)
        self.server.wait_for(lambda m: m["tern_http_requests_active"] == 1)
        self.assertLess(self.tokenized() - self.before, 20 * TEXT)


class End(common.FolderTest):
    def test_nothing_is_read_at_the_end(self):
        """A drain of zero seconds also ends the requests that wait to be read."""
        with Server("--drain", 0) as server:
            body = json.dumps({"content": words(TEXT)})
            connections = [server.connect() for _ in range(40)]
            for connection in connections:
                self.addCleanup(connection.close)
                connection.request("POST", "/tokenize", body, JSON)
            server.signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(), 0)
            statuses = []
            for connection in connections:
                try:
                    statuses.append(connection.getresponse().status)
                except (ConnectionError, OSError):  # it came too late to be taken
                    statuses.append(0)
        self.assertEqual(set(statuses) - {0, 200, 503}, set())


class Keys(common.FolderTest):
    def test_a_limit_of_requests_counts_before_they_are_read(self):
        keys = self.dir / "keys"
        keys.write_text("alice key-a requests=1\n")
        with Server("--api-key-file", keys) as server:
            headers = {"x-api-key": "key-a"} | JSON
            body = {"prompt": "Once upon", "max_tokens": -1, "ignore_eos": True, "stream": True}
            connection = server.connect()
            self.addCleanup(connection.close)
            connection.request("POST", "/v1/completions", json.dumps(body), headers)
            connection.getresponse().readline()
            before = server.ask("GET", "/metrics", headers={"x-api-key": "key-a"}).body
            reply = server.ask("POST", "/v1/completions", {"prompt": words(TEXT)}, headers)
            self.assertIn(reply.status, (400, 429))  # 400 where the stream has ended already
            if reply.status == 429:
                self.assertEqual(reply.json()["error"]["code"], "rate_limit_exceeded")
            self.assertIn(TOKENIZED.encode(), before)
            self.assertEqual(server.ask("POST", "/v1/completions", {"prompt": 3}, headers).status in (400, 429), True)


if __name__ == "__main__":
    common.main()
