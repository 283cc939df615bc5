# SPDX-License-Identifier: Apache-2.0
"""tern serve --slot-save-path: what a place for answers held is saved in a file, and restored in another server."""

import os
import tempfile
from pathlib import Path

import common
from serving import Server
from test_serve import Served

LONG = "Once upon a time there was a panda who lived at the sea. " * 8  # some pages of positions
PAGE = 64


class Slots(Served):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def start(self, **more):
        server = Server("--slot-save-path", self.folder, "--parallel", 3, **more)
        self.addCleanup(server.stop)
        return server

    def ask(self, server, prompt=LONG, headers=None, **fields):
        reply = server.post("/completion", headers, prompt=prompt, n_predict=6, temperature=0, **fields)
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json()

    def test_saved_and_restored(self):
        first = self.start()
        alone = self.ask(first, LONG + "Then", cache_prompt=False)
        self.ask(first, id_slot=1)
        saved = first.post("/slots/1?action=save", filename="a.bin").json()
        self.assertEqual((saved["id_slot"], saved["filename"], saved["n_saved"] % PAGE), (1, "a.bin", 0))
        self.assertGreater(saved["n_saved"], PAGE)
        self.assertEqual(saved["n_written"], (self.folder / "a.bin").stat().st_size)
        self.assertEqual(os.listdir(self.folder), ["a.bin"])
        self.refused(first.post("/slots/2?action=save", filename="b"), 400)  # it holds nothing
        first.stop()
        second = self.start()
        fresh = self.ask(second, LONG + "Luna", cache_prompt=False)
        self.assertEqual(fresh["tokens_cached"], 0)
        restored = second.post("/slots/0?action=restore", filename="a.bin").json()
        self.assertEqual((restored["n_restored"], restored["n_read"]), (saved["n_saved"], saved["n_written"]))
        found = self.ask(second, LONG + "Then")
        self.assertEqual(found["tokens_cached"], saved["n_saved"] // PAGE * PAGE)
        self.assertEqual(found["tern"]["digest"], alone["tern"]["digest"])
        self.assertEqual(found["content"], alone["content"])

    def test_places(self):
        """An answer without a place goes into the one that was used the longest ago; an erased one holds nothing."""
        server = self.start()
        sizes = []
        for i, slot in enumerate((1, 0, None, 2, None)):
            reply = self.ask(server, "The " * i + LONG, **({} if slot is None else {"id_slot": slot}))
            self.assertEqual(reply["tern"]["ignored"], [])
            sizes.append(reply["tokens_evaluated"] + reply["tokens_predicted"])
        erased = [server.ask("POST", f"/slots/{slot}?action=erase").json()["n_erased"] for slot in (0, 1, 2)]
        self.assertEqual(erased, [sizes[1], sizes[4], sizes[3]])
        self.assertEqual(server.post("/slots/0?action=erase").json(), {"id_slot": 0, "n_erased": 0})
        self.refused(server.post("/slots/0?action=save", filename="x"), 400)

    def test_wrong_wishes(self):
        server = self.start()
        self.ask(server, id_slot=0)
        for name in ("../a", "/etc/passwd", "a/b", ".a", "", "a b", "x" * 129, None, 3):
            self.refused(server.post("/slots/0?action=save", filename=name), 400, "filename")
        self.refused(server.post("/slots/3?action=erase"), 400)
        self.refused(server.post("/slots/0?action=fly"), 400, "action")
        self.refused(server.post("/slots/0?action=restore", filename="none"), 400, "filename")
        self.assertEqual(os.listdir(self.folder), [])
        server.post("/slots/0?action=save", filename="a")
        whole = (self.folder / "a").read_bytes()
        (self.folder / "a").write_bytes(whole[:-9] + b"\0" * 9)
        reply = server.post("/slots/0?action=restore", filename="a")
        self.refused(reply, 400, "filename")
        self.assertNotIn(str(self.folder), reply.body.decode())
        self.assertEqual(self.server.post("/slots/0?action=save", filename="a").status, 501)

    def test_each_key_has_its_own(self):
        server = self.start(env={"TERN_API_KEY": "one,two"})
        one, two = ({"authorization": f"Bearer {key}"} for key in ("one", "two"))
        self.ask(server, headers=one, id_slot=0)
        self.refused(server.post("/slots/0?action=save", two, filename="a"), 400)
        self.assertEqual(server.post("/slots/0?action=erase", two).json()["n_erased"], 0)
        self.assertEqual(server.post("/slots/0?action=save", one, filename="a").status, 200)
        self.refused(server.post("/slots/0?action=restore", two, filename="a"), 400, "filename")
        self.assertEqual(server.post("/slots/0?action=erase").status, 401)
        server.stop()
        other = self.start(env={"TERN_API_KEY": "one,two"})
        self.assertEqual(other.post("/slots/0?action=restore", one, filename="a").status, 200)
        self.assertEqual([self.ask(other, headers=key)["tokens_cached"] > 0 for key in (two, one)], [False, True])


if __name__ == "__main__":
    common.main()
