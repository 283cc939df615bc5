# SPDX-License-Identifier: Apache-2.0
"""tern serve with several models: each answers what it answers alone, and takes turns with the others in memory."""

import json
import random
import shutil
import threading

import common
from common import suite
from serving import JSON, LONG, SLOW, Server, together
from test_serve_metrics import parse

QUICK = ("--no-cache", "--no-tune", "--threads", 2)
PRESETS = {"a": ("llama-tiny-f16", 1), "b": ("llama-tiny-f16", 2), "c": ("llama-tiny-q4_0", 1)}
ASKED = {"prompt": [1, 2, 3], "max_tokens": 12, "ignore_eos": True, "temperature": 0}


def answer_of(reply):
    """Everything of a reply that only its model decides."""
    reply = reply.json()
    return reply["choices"][0]["text"], reply["tern"]["digest"], reply["system_fingerprint"], reply["model"]


def states(server):
    return {model["id"]: model["status"]["value"] for model in server.get("/v1/models").json()["data"]}


class SeveralModels(common.FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.files_in = cls.dir / "models"
        cls.files_in.mkdir()
        for name, (preset, seed) in PRESETS.items():
            shutil.copy(common.synth(preset, cls.dir, seed), cls.files_in / f"{name}.gguf")
        cls.alone = {}
        for name in PRESETS:
            with Server("-m", cls.files_in / f"{name}.gguf", *QUICK) as server:
                cls.alone[name] = answer_of(server.post("/v1/completions", **ASKED))

    def files(self, *names):
        return [word for name in names for word in ("-m", self.files_in / f"{name}.gguf")]

    def ask(self, server, name):
        return server.post("/v1/completions", **ASKED, model=name)

    def check(self, server, *names):
        for name in names:
            reply = self.ask(server, name)
            self.assertEqual(reply.status, 200, reply.body)
            self.assertEqual(answer_of(reply), self.alone[name])

    def test_each_answers_as_alone(self):
        """The first is there at once, the others come when they are asked for."""
        with Server(*self.files("a", "b", "c"), *QUICK) as server:
            self.assertIn("serving a and 2 more at ", server.greeting[0])
            self.assertEqual(states(server), {"a": "loaded", "b": "unloaded", "c": "unloaded"})
            self.check(server, "c", "a", "b", "c:latest".removesuffix(":latest"))
            self.assertEqual(answer_of(self.ask(server, "c:latest")), self.alone["c"])
            self.assertEqual(states(server), {"a": "loaded", "b": "loaded", "c": "loaded"})
            self.assertEqual(answer_of(server.post("/v1/completions", **ASKED)), self.alone["a"])

    def test_unknown_names(self):
        with Server(*self.files("a", "b"), *QUICK) as server:
            for reply in (self.ask(server, "nobody"), server.get("/v1/models/nobody"), server.get("/props?model=nobody")):
                self.assertEqual(reply.status, 404)
                self.assertEqual(reply.json()["error"]["code"], "model_not_found")
                self.assertEqual(reply.json()["error"]["message"], "there is no model 'nobody' here, only 'a', 'b'")
            self.assertEqual(states(server)["b"], "unloaded")
        with Server(*self.files("a", "b"), *QUICK, "--any-model") as server:
            self.assertEqual(answer_of(self.ask(server, "nobody")), self.alone["a"])
            self.check(server, "b")

    def test_the_one_used_least_recently_is_given_up(self):
        with Server(*self.files("a", "b", "c"), *QUICK, "--models-max", 2) as server:
            self.check(server, "b", "a", "c")
            self.assertEqual(states(server), {"a": "loaded", "b": "unloaded", "c": "loaded"})
            self.check(server, "b", "b")
            self.assertEqual(states(server), {"a": "unloaded", "b": "loaded", "c": "loaded"})
            page = server.get("/metrics").body.decode()
            value = parse(page)["tern_requests_total"][1]
            self.assertEqual([value["tern_requests_total", f'{{model="{name}"}}'] for name in "abc"], [1, 3, 1])
            loaded = parse(page)["tern_model_loaded"][1]
            self.assertEqual([loaded["tern_model_loaded", f'{{model="{name}"}}'] for name in "abc"], [0, 1, 1])

    def test_memory_has_a_limit(self):
        """A model that is too large for the limit costs no other its place."""
        with Server(*self.files("a", "b"), *QUICK) as server:
            self.check(server, "b")
            bytes_of = parse(server.get("/metrics").body.decode())["tern_model_bytes"][1]
        one = max(bytes_of.values()) / 2**20
        limit = int(one) + 1
        with Server(*self.files("a", "b"), *QUICK, "--models-memory", limit) as server:
            self.check(server, "b")
            self.assertEqual(states(server), {"a": "unloaded", "b": "loaded"})
        with Server(*self.files("a", "b"), *QUICK, "--models-memory", int(2 * one) + 1) as server:
            self.check(server, "b", "a")
            self.assertEqual(states(server), {"a": "loaded", "b": "loaded"})
        shutil.copy(common.small_model(), self.dir / "large.gguf")
        with Server(*self.files("a"), "-m", self.dir / "large.gguf", *QUICK, "--models-memory", limit) as server:
            reply = self.ask(server, "large")
            self.assertEqual(reply.status, 500)
            self.assertRegex(reply.json()["error"]["message"], rf"large.gguf: it takes \d+ MiB, and .* may take {limit}$")
            self.assertEqual(states(server), {"a": "loaded", "large": "failed"})

    def memory(self, server):
        """Returns what each model takes, and how much of that another one has, too."""
        found = parse(server.get("/metrics").body.decode())
        taken, shared = ({labels: value for (_, labels), value in found[f"tern_model_{name}"][1].items()}
                         for name in ("bytes", "shared_bytes"))
        for model, (labels, value) in zip(server.get("/v1/models").json()["data"], shared.items(), strict=True):
            self.assertEqual(model["meta"].get("shared_memory", 0), value)
            self.assertEqual(model["meta"].get("memory", 0), taken[labels])
        return list(taken.values()), list(shared.values())

    def test_equal_matrices_are_there_once(self):
        """Three models of equal bytes have room where three others have none, and tell so."""
        options = ["-m", common.small_model(), *QUICK, "--kv-memory", 1]
        for name in ("twin", "third"):
            shutil.copy(common.small_model(), self.dir / f"{name}.gguf")
            options += ["-m", self.dir / f"{name}.gguf"]
        with Server(*options) as server:
            alone = answer_of(self.ask(server, "tern-small"))
            self.assertEqual(self.memory(server)[1], [0, 0, 0])
            for name in ("twin", "third"):
                self.assertEqual(answer_of(self.ask(server, name))[:3], alone[:3])
            taken, shared = self.memory(server)
        self.assertGreater(shared[0], 1 << 20)
        self.assertEqual(shared, shared[:1] * 3)
        room = int((sum(taken) - 2 * shared[0]) / 2**20) + 1
        self.assertLess(room * 2**20, sum(taken) - shared[0])
        for limit, state in ((room, "loaded"), (room - 1, "unloaded")):
            with Server(*options, "--models-memory", limit) as server:
                for name in ("twin", "third"):
                    self.assertEqual(answer_of(self.ask(server, name))[:3], alone[:3])
                self.assertEqual(states(server), {"tern-small": state, "twin": "loaded", "third": "loaded"})

    def test_what_another_reads_stays(self):
        """A model is given up while one answers that reads its matrices."""
        twin = self.files_in.parent / "twin.gguf"
        shutil.copy(common.small_model(), twin)
        asked = {"prompt": "Once upon a time", **LONG, "stream": False, "temperature": 0}
        options = ("-m", common.small_model(), "-m", twin, *self.files("b"), *SLOW, *QUICK[:2])
        with Server(*options, "--models-max", 2) as server:
            alone = answer_of(server.post("/v1/completions", **asked))
            self.ask(server, "twin")
            found = []
            thread = threading.Thread(target=lambda: found.append(server.post("/v1/completions", **asked, model="twin")))
            thread.start()
            running = ("tern_answers_running", '{model="twin"}')
            suite.until(lambda: parse(server.get("/metrics").body.decode())[running[0]][1][running] == 1)
            self.check(server, "b")
            self.assertEqual(states(server), {"tern-small": "unloaded", "twin": "loaded", "b": "loaded"})
            self.assertEqual(self.memory(server)[1], [0, 0, 0])
            thread.join()
            self.assertEqual(answer_of(found[0])[:3], alone[:3])

    def test_a_model_that_answers_stays(self):
        """With room for one, another waits until its answer has ended, and nothing is refused."""
        with Server("-m", common.small_model(), *self.files("b"), *SLOW, *QUICK[:2], "--models-max", 1) as server:
            connection = server.connect()
            connection.request("POST", "/v1/completions", json.dumps({"prompt": "Once upon a time", **LONG}), JSON)
            stream = connection.getresponse()
            stream.readline()
            found = []
            waits = threading.Thread(target=lambda: found.append(self.ask(server, "b")))
            waits.start()
            suite.until(lambda: states(server)["b"] == "loading")
            last = stream.read().decode()
            self.assertIn('"finish_reason":"length"', last)
            waits.join()
            connection.close()
            self.assertEqual(answer_of(found[0]), self.alone["b"])

    def test_a_broken_file(self):
        """It gives one clear error, costs nobody their place, and is tried again when it has changed."""
        broken = self.dir / "broken.gguf"
        broken.write_bytes(b"GGUF" + bytes(60))
        with Server(*self.files("a", "b"), "-m", broken, *QUICK, "--models-max", 2) as server:
            self.check(server, "b")
            for _ in range(2):
                reply = self.ask(server, "broken")
                self.assertEqual(reply.status, 500)
                self.assertEqual(reply.json()["error"]["code"], "model_not_loadable")
                self.assertRegex(reply.json()["error"]["message"], "the model 'broken' cannot be loaded: broken.gguf: .*version")
            self.assertNotIn(str(self.dir), reply.body.decode())
            self.assertEqual(states(server), {"a": "loaded", "b": "loaded", "broken": "failed"})
            self.assertEqual(server.log().count("version"), 1)
            self.check(server, "a", "b")
            broken.write_bytes((self.files_in / "c.gguf").read_bytes())
            self.assertEqual(answer_of(self.ask(server, "broken"))[:3], self.alone["c"][:3])

    def test_a_file_that_changes(self):
        """Its model is loaded again; the others go on."""
        changing = self.dir / "changing.gguf"
        shutil.copy(self.files_in / "b.gguf", changing)
        with Server(*self.files("a"), "-m", changing, *QUICK) as server:
            self.assertEqual(answer_of(self.ask(server, "changing"))[:3], self.alone["b"][:3])
            with changing.open("r+b") as file:
                file.write((self.files_in / "c.gguf").read_bytes())
                file.truncate()
            suite.until(lambda: states(server)["changing"] == "unloaded")
            self.check(server, "a")
            self.assertEqual(answer_of(self.ask(server, "changing"))[:3], self.alone["c"][:3])
            self.assertIn("changing.gguf: was changed while it was in use", server.log())

    def test_a_folder(self):
        """None is named first, so all wait."""
        for options in (("-m", self.files_in), ("--models", self.files_in)):
            with Server(*options, *QUICK) as server:
                self.assertEqual(states(server), dict.fromkeys("abc", "unloaded"))
                self.assertEqual("".join(states(server)), "abc")  # by name
                self.check(server, "b")
                self.assertEqual(server.get("/ready").status, 200)
        with Server(
            "-m", common.small_model(), "--models", self.files_in, *QUICK
        ) as server:
            self.assertEqual(states(server)["tern-small"], "loaded")
            self.check(server, "a")

    def test_wrong_lists(self):
        a = self.files_in / "a.gguf"
        empty = self.dir / "empty"
        empty.mkdir(exist_ok=True)
        for options, said in (
            (("-m", a, "-m", a), "would both be called a"),
            (("-m", a, "-m", self.files_in / "b.gguf", "--alias", "x"), "--alias names one model, and there are 2"),
            (("--models", empty), "no models"),
        ):
            done = common.tern("serve", "--port", 0, *options)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr.decode())

    def test_pages_of_a_model(self):
        with Server(*self.files("a", "b"), *QUICK, "--parallel", 2) as server:
            self.assertEqual(server.get("/props?model=b").json()["system_fingerprint"], self.alone["b"][2])
            self.assertEqual(server.get("/props").json()["system_fingerprint"], self.alone["a"][2])
            self.assertEqual([slot["model"] for slot in server.get("/slots").json()], ["a", "a", "b", "b"])
            self.assertEqual([slot["model"] for slot in server.get("/slots?model=%62").json()], ["b", "b"])
            self.assertEqual(server.get("/v1/models/b").json()["status"], {"value": "loaded"})
            tokens = server.post("/tokenize", content="ab", model="b").json()["tokens"]
            self.assertEqual(server.post("/detokenize", tokens=tokens, model="b").json()["content"], "ab")

    def test_a_receipt_names_its_model(self):
        with Server(*self.files("a", "b"), *QUICK) as server:
            reply = server.post("/v1/completions", **ASKED, model="b", receipt=True).json()
            receipt = reply["tern"]["receipt"]
            self.assertEqual(receipt["system_fingerprint"], self.alone["b"][2])
            self.assertTrue("b.gguf" in str(receipt["model_info"]), receipt["model_info"])

    def test_drain_and_end_while_some_wait(self):
        """A request whose model is still to be loaded is answered before a server ends, or told that it does."""
        for drain in (0, 30):
            with Server(*self.files("a", "b"), *QUICK, "--drain", drain) as server:
                replies = []
                threads = [threading.Thread(target=lambda: replies.append(self.ask(server, "b"))) for _ in range(3)]
                for thread in threads:
                    thread.start()
                server.wait_for(lambda page: page["tern_http_requests_active"] >= 2)
                server.signal()
                for thread in threads:
                    thread.join()
                self.assertEqual(server.process.wait(30), 0)
                self.assertEqual(len(replies), 3)
                for reply in replies:
                    self.assertIn(reply.status, (200, 503))
                    if reply.status == 200:
                        self.assertEqual(answer_of(reply), self.alone["b"])

    def test_many_requests_for_few_places(self):
        """Random requests over three models with room for two: every answer is the model's own."""
        draw = random.Random(38)
        asked = [draw.choice("abc") for _ in range(60)]
        with Server(*self.files("a", "b", "c"), *QUICK, "--models-max", 2) as server:
            replies = together([lambda names=asked[i::6]: [self.ask(server, name) for name in names] for i in range(6)])
            for i in range(6):
                for name, reply in zip(asked[i::6], replies[i], strict=True):
                    self.assertEqual(reply.status, 200, reply.body)
                    self.assertEqual(answer_of(reply), self.alone[name])
            self.assertLessEqual(list(states(server).values()).count("loaded"), 2)
            self.assertEqual(server.stop(), 0)  # a thread sanitizer makes another status of what it finds


if __name__ == "__main__":
    common.main()
