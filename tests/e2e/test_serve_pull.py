# SPDX-License-Identifier: Apache-2.0
"""tern serve --pull-path: clients fetch models from a Hub of the test's own, use and remove them."""

import contextlib
import hashlib
import json
import tempfile
import threading
from pathlib import Path

import common
from common import suite, tern
from hub_server import Hub
from serving import Server
from test_serve import QUESTION, Served

REPO = "someone/tiny-model"
BIG = bytes(range(256)) * 4000
NAME = f"hf.co/{REPO}:q8_0"


class Pull(Served):
    @classmethod
    def setUpClass(cls):
        cls.model = Path(common.small_model()).read_bytes()

    def setUp(self):
        self.hub = Hub({REPO: {"tiny-q8_0.gguf": self.model, "tiny-f16.gguf": BIG}, "someone/folder": {"config.json": b"{}", "model.safetensors": BIG}})
        self.addCleanup(self.hub.stop)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name) / "pulled"
        self.env = {"HF_ENDPOINT": self.hub.url, "HOME": folder.name, "HF_TOKEN": "", "HF_HOME": "", "XDG_CONFIG_HOME": folder.name,
                    "HF_TOKEN_PATH": str(Path(folder.name) / "token"), "HF_HUB_OFFLINE": "", "no_proxy": "*", "NO_PROXY": "*"}
        if b"made without libcurl" in tern("pull", f"{REPO}:nothing", env=self.env | {"HF_HUB_CACHE": folder.name}).stderr:
            self.skipTest("built without libcurl")
        self.hub.seen.clear()
        self.server = self.start()

    def start(self):
        server = Server("-m", common.small_model(), "--threads", 1, "--pull-path", self.folder, env=self.env)
        self.addCleanup(server.stop)
        return server

    def lines(self, reply):
        self.assertEqual((reply.status, reply.headers["content-type"]), (200, "application/x-ndjson"))
        return [json.loads(line) for line in reply.body.decode().splitlines()]

    def pull(self, name, **fields):
        return self.server.post("/api/pull", model=name, **fields)

    def refused(self, reply, status):
        self.assertEqual(reply.status, status, reply.body)
        return reply.json()["error"]

    def listed(self):
        return [model["name"].removesuffix(":latest") for model in self.server.get("/api/tags").json()["models"]]

    def test_a_model_is_fetched_used_and_removed(self):
        lines = self.lines(self.pull(NAME))
        name = hashlib.sha256(self.model).hexdigest()
        self.assertEqual([line["status"] for line in lines if "digest" not in line],
                         ["pulling manifest", "verifying sha256 digest", "writing manifest", "success"])
        last = [line for line in lines if "digest" in line][-1]
        self.assertEqual(last, {"status": f"pulling {name[:12]}", "digest": f"sha256:{name}", "total": len(self.model), "completed": len(self.model)})
        self.assertEqual(self.listed(), ["tern-small", NAME])
        asked = {"model": NAME, "messages": [{"role": "user", "content": QUESTION}], "stream": False, "options": {"temperature": 0}}
        told = self.server.post("/api/chat", **asked).json()
        self.assertEqual(told["tern"]["digest"], self.server.post("/api/chat", **asked | {"model": "tern-small"}).json()["tern"]["digest"])
        self.assertIn(NAME, {model["id"] for model in self.server.get("/v1/models").json()["data"]})
        self.assertEqual(self.pull(NAME, stream=False).json(), {"status": "success"})  # nothing is fetched twice
        self.assertEqual(len(self.hub.stored), 1)
        self.server.stop()
        self.server = self.start()  # it is there when the server begins again
        self.assertEqual(self.listed(), ["tern-small", NAME])
        self.assertEqual(self.server.post("/api/chat", **asked).json()["tern"]["digest"], told["tern"]["digest"])
        reply = self.server.ask("DELETE", "/api/delete", {"model": NAME + ":latest"})
        self.assertEqual((reply.status, reply.body), (200, b""))
        self.assertEqual(self.listed(), ["tern-small"])
        self.assertEqual([p for p in self.folder.rglob("*") if not p.is_dir() and ".locks" not in p.parts and "refs" not in p.parts], [])
        self.refused(self.server.ask("DELETE", "/api/delete", {"model": NAME}), 404)
        self.assertEqual(self.server.post("/api/chat", **asked).status, 404)
        self.assertEqual(self.pull(NAME, stream=False).json(), {"status": "success"})
        self.assertEqual(self.server.post("/api/chat", **asked).json()["tern"]["digest"], told["tern"]["digest"])

    def test_what_is_refused(self):
        self.assertEqual(self.pull("tern-small", stream=False).json(), {"status": "success"})  # it is served already
        self.refused(self.server.ask("DELETE", "/api/delete", {"model": "tern-small"}), 403)
        for name, word in (("llama9", "short name"), ("someone/else", "HF_TOKEN"), (REPO, "tiny-f16.gguf"), ("someone/folder", "gguf"),
                           ("--verbose", "name of a model"), ("../../etc", "OWNER/NAME"), ("x" * 100, "99 bytes"), ("", "99 bytes")):
            with self.subTest(name=name):
                self.assertIn(word, self.refused(self.pull(name, stream=False), 400))
                if len(name) in range(1, 100):
                    self.assertIn(word, self.lines(self.pull(name))[-1]["error"])
        self.hub.wrong.add("tiny-q8_0.gguf")
        self.assertIn("thrown away", self.refused(self.pull(NAME, stream=False), 400))
        self.assertEqual(self.listed(), ["tern-small"])
        self.assertEqual(list(self.folder.rglob("*.gguf")), [])
        for path in ("/api/copy", "/api/create", "/api/push"):
            self.refused(self.server.post(path, model="a"), 501)

    def test_it_is_off_unless_asked_for(self):
        with Server("-m", common.small_model(), "--threads", 1, env=self.env) as server:
            for reply in (server.post("/api/pull", model=NAME), server.ask("DELETE", "/api/delete", {"model": NAME})):
                self.assertIn("--pull-path", self.refused(reply, 501))
        self.assertEqual(self.hub.seen, [])

    def test_those_who_ask_together_share_the_work(self):
        """And it goes on as long as one of them is there."""
        gate = self.hold()
        (first, leave), (second, _) = self.open(NAME), self.open(NAME)
        self.assertEqual(json.loads(first.readline()), {"status": "pulling manifest"})
        second.readline()
        self.assertEqual(len(self.children()), 1)
        leave()
        suite.until(lambda: self.server.metrics()["tern_http_requests_active"] <= 2)
        gate.set()
        self.assertEqual(json.loads(second.read().splitlines()[-1]), {"status": "success"})
        self.assertEqual(len(self.hub.stored), 1)

    def test_who_leaves_ends_it(self):
        gate = self.hold()
        stream, leave = self.open(NAME)
        stream.readline()
        suite.until(lambda: self.hub.stored)
        leave()
        suite.until(lambda: not self.children())
        gate.set()
        self.assertEqual(self.listed(), ["tern-small"])
        self.assertEqual(list(self.folder.rglob("*.gguf")), [])
        self.assertEqual(self.pull(NAME, stream=False).json(), {"status": "success"})

    def children(self):
        """Processes that fetch for the server."""
        parents = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):  # it has ended
                parents[stat.parent.name] = stat.read_text().rsplit(")", 1)[1].split()[1]
        return [pid for pid, parent in parents.items() if parent == str(self.server.process.pid)]

    def hold(self):
        """Downloads wait for the event that is returned."""
        self.hub.hold = threading.Event()
        self.addCleanup(self.hub.hold.set)
        return self.hub.hold

    def open(self, name):
        """The reply to a request that is under way, and a function by which its client leaves."""
        connection = self.server.connect()
        connection.request("POST", "/api/pull", json.dumps({"model": name}))
        reply = connection.getresponse()

        def leave():
            reply.close()
            connection.close()

        self.addCleanup(leave)
        return reply, leave


if __name__ == "__main__":
    common.main()
