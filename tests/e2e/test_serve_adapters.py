# SPDX-License-Identifier: Apache-2.0
"""tern serve --lora: adapters by request and by the route of llama.cpp, and answers that are those of the program."""

import common
from common import suite, tern_json

suite.need("numpy", "gguf")

import adapter_file  # noqa: E402
from serving import Server, together  # noqa: E402

TEXT = "Once upon a time there was a panda who lived at the sea. " * 4  # some pages of positions
SCALES = [(), ((0, 1.0),), ((1, 0.5),), ((1, 0.5), (0, 1.0)), ((0, -1.0), (2, 2.0)), ((2, 1.0),)]


def lora(uses):
    return [{"id": i, "scale": s} for i, s in uses]


class ServedAdapters(common.FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = common.small_model()
        cls.files = []
        for i, settings in enumerate(({"rank": 4}, {"rank": 19, "kind": 1}, {"rank": 8, "alpha": 0})):
            adapter = adapter_file.Adapter(cls.model, seed=i, size=0.02, **settings)
            cls.files.append(adapter.write(cls.dir / f"{i}.gguf"))
        options = [x for i, file in enumerate(cls.files) for x in ("--lora", f"{file}={0.25 * i}")]
        cls.server = Server("-m", cls.model, "--parallel", 8, *options)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        super().tearDownClass()

    def ask(self, uses=None, **fields):
        more = {} if uses is None else {"lora": lora(uses)}
        reply = self.server.post("/completion", prompt=TEXT, n_predict=8, temperature=0, **more, **fields)
        self.assertEqual(reply.status, 200, reply.body)
        answer = reply.json()
        return answer["content"], reply.headers["x-tern-digest"], answer["tokens_cached"]

    def test_requests(self):
        """Requests with different adapters at the same time, twice: each has the bits that it has alone."""
        alone = [self.ask(uses, cache_prompt=False)[:2] for uses in SCALES]
        for _ in range(2):
            at_once = together([lambda uses=uses: self.ask(uses)[:2] for uses in SCALES])
            self.assertEqual(at_once, alone)
        self.assertEqual(len({str(a) for a in alone}), len(SCALES))

    def test_program(self):
        """The answer is that of tern run with the same adapters."""
        uses = ((1, 0.5), (2, 1.0))
        options = [x for i, s in uses for x in ("--lora", f"{self.files[i]}={s}")]
        ran = tern_json("run", "-m", self.model, "-p", TEXT, "-n", 8, "--temp", 0, *options)
        self.assertEqual(ran["text"], self.ask(uses)[0])

    def test_pages(self):
        """What was computed with adapters is found again with the same ones only."""
        self.ask(((0, 0.5),))
        self.assertGreater(self.ask(((0, 0.5), (1, 0.0)))[2], 0)
        self.assertEqual(self.ask(((0, 0.75),))[2], 0)
        self.assertEqual(self.ask(((1, 0.125),))[2], 0)

    def test_route(self):
        """The scales of requests that say none: those of the command line, until a client sets others."""
        listed = self.server.get("/lora-adapters").json()
        self.assertEqual([(a["id"], a["path"], a["scale"]) for a in listed],
                         [(0, "0.gguf", 0.0), (1, "1.gguf", 0.25), (2, "2.gguf", 0.5)])  # fmt: skip
        self.assertEqual([a["rank"] for a in listed], [4, 19, 8])
        first = self.ask()
        self.assertEqual(first[:2], self.ask(((1, 0.25), (2, 0.5)))[:2])
        reply = self.server.ask("POST", "/lora-adapters", b'[{"id": 2, "scale": 1.5}]')
        self.assertEqual([a["scale"] for a in reply.json()], [0.0, 0.0, 1.5])
        self.assertEqual(self.ask()[:2], self.ask(((2, 1.5),))[:2])
        self.server.ask("POST", "/lora-adapters", b'[{"id": 1, "scale": 0.25}, {"id": 2, "scale": 0.5}]')
        self.assertEqual(self.ask()[:2], first[:2])

    def test_chats(self):
        """Chats and completions have the field, too."""
        for ask in (self.server.chat, self.server.complete):
            digests = {ask("Hello", max_tokens=6, lora=lora(uses)).headers["x-tern-digest"] for uses in SCALES}
            self.assertEqual(len(digests), len(SCALES))

    def test_refused(self):
        for value, words in (
            (3, "array"),
            ([3], "array"),
            ([{"id": 0}], "scale"),
            ([{"id": "0", "scale": 1}], "id"),
            ([{"id": 3, "scale": 1}], "no adapter 3, this server has 3"),
            ([{"id": -1, "scale": 1}], "no adapter -1"),
            ([{"id": 0, "scale": 1e4}], "1000"),
            ([{"id": 0, "scale": 1}, {"id": 0, "scale": 2}], "twice"),
        ):
            reply = self.server.post("/completion", prompt="a", lora=value)
            self.assertEqual(reply.status, 400, reply.body)
            self.assertIn(words, reply.json()["error"]["message"])
        self.assertEqual(self.server.complete("a", max_tokens=1, receipt=True).status, 400)
        for body in (b"", b"{}", b"[", b"[1]", b'[{"id": 9, "scale": 1}]'):
            self.assertEqual(self.server.ask("POST", "/lora-adapters", body).status, 400)


if __name__ == "__main__":
    common.main()
