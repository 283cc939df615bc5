# SPDX-License-Identifier: Apache-2.0
"""tern serve --record: a line for each answer, whole, with what it was asked for and its digest, and with nothing else."""

import json
import os
import re
import signal
import stat

import common
import receipt_tools
from common import tern_text
from serving import LONG, SLOW, Server, together

KEY = "sk-record-secret-0123456789"
QUICK = ("--no-cache", "--no-tune", "--threads", 1)
TALK = {"messages": [{"role": "user", "content": "What is 2+2?"}]}
CUT = b'{"$schema":"urn:tern:record:1.0.0","model_i'


def lines_of(path):
    """The lines of a recording, each of which must be whole JSON."""
    data = path.read_bytes()
    assert data.endswith(b"\n"), data[-80:]
    return [json.loads(line) for line in data.splitlines()]


def begin(server):
    """The connection of a long stream that has begun."""
    sock = server.socket()
    body = json.dumps({"prompt": "The sky", **LONG}).encode()
    sock.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                 b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    assert sock.recv(65536).startswith(b"HTTP/1.1 200")
    return sock


class Record(common.FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.path = cls.dir / "answers.jsonl"
        mask = os.umask(0)  # the file is its owner's whatever the mask is
        with Server("--record", cls.path, "--api-key", KEY, *QUICK) as server:
            os.umask(mask)
            cls.asked = [
                lambda: server.post("/v1/chat/completions", headers={"Authorization": f"Bearer {KEY}", "X-Private": "a header"},
                                    **TALK, max_tokens=6, temperature=0.9, seed=5),
                lambda: server.post("/v1/messages", headers={"x-api-key": KEY}, **TALK, max_tokens=6, stream=True),
                lambda: server.post("/api/chat", headers={"Authorization": f"Bearer {KEY}"}, **TALK, stream=False, options={"num_predict": 6}),
                lambda: server.post("/v1/completions", headers={"Authorization": f"Bearer {KEY}"}, prompt=["Once upon", "The sky"],
                                    n=2, seed=7, temperature=1, max_tokens=5),
                lambda: server.post("/v1/chat/completions", headers={"Authorization": f"Bearer {KEY}"}, **TALK, max_tokens=9,
                                    response_format={"type": "json_object"}),
            ]
            cls.replies = together(cls.asked)
            server.stop()
        cls.lines = lines_of(cls.path)

    def refused(self, path, said, *options):
        """A server with this recording does not start; one that starts is ended."""
        with self.assertRaisesRegex(AssertionError, f"tern: --record: .*{re.escape(said)}"), Server("--record", path, *options, *QUICK):
            pass

    def test_every_answer_has_a_line(self):
        self.assertEqual([reply.status for reply in self.replies], [200] * 5, [reply.body for reply in self.replies])
        self.assertEqual(len(self.lines), 8)
        digests = [line["output"]["hidden_sha256"] for line in self.lines]
        for reply in (self.replies[0], self.replies[2], self.replies[3], self.replies[4]):
            for digest in reply.json()["tern"]["digest"]:
                self.assertIn(digest, digests)
        self.assertEqual(sorted(line["sampler"]["seed"] for line in self.lines if line["sampler"]["temperature"] == 1), ["7", "7", "8", "8"])
        self.assertEqual([line["form"]["kind"] for line in self.lines if "form" in line], ["schema"])
        for line in self.lines:
            self.assertEqual(line["$schema"], "urn:tern:record:1.0.0")
            self.assertNotEqual(line["output"]["ids"], [])  # of second choices, too
            for part in ("prompt", "output"):
                self.assertEqual(line[part]["ids_sha256"], receipt_tools.hash_ids(line[part]["ids"]))

    def test_of_owner_alone_and_without_keys(self):
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)
        text = self.path.read_text()
        for private in (KEY, "a header", "X-Private", "Authorization", "api-key", str(common.ROOT)):
            self.assertNotIn(private, text)

    def test_killed_in_the_middle(self):
        """What a client has got whole is there, what was under way is not; the next server takes a part of a line away."""
        path = self.dir / "killed.jsonl"
        with Server("--record", path, *QUICK, *SLOW) as server:
            whole = [server.complete("Once upon", max_tokens=3).json()["tern"]["digest"][0] for _ in range(3)]
            begin(server).close()  # a stop in the middle
            server.wait_for(lambda m: m["tern_answers_running"] == 0)
            streams = [begin(server) for _ in range(2)]
            server.signal(signal.SIGKILL)
            server.process.wait()
            for stream in streams:
                stream.close()
        self.assertEqual([line["output"]["hidden_sha256"] for line in lines_of(path)], whole)
        path.chmod(0o644)
        with path.open("ab") as file:
            file.write(CUT)
        with Server("--record", path, *QUICK) as server:
            self.assertIn(f"its last line was a part, {len(CUT)} bytes, and is taken away", server.log())
            server.complete("Once upon", max_tokens=3)
            self.refused(path, "another program records to it")
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        self.assertEqual([line["output"]["hidden_sha256"] for line in lines_of(path)], whole + whole[:1])

    def test_the_limit(self):
        """The line that would not fit says that the recording is full, and the server goes on."""
        path = self.dir / "full.jsonl"
        fields = {"prompt": "Once", "max_tokens": 2, "temperature": 0, "seed": 1}
        with Server("--record", path, *QUICK) as server:
            server.post("/v1/completions", **fields)
        line = path.read_bytes()
        room = (1 << 20) - 128
        size = (1 << 20) - len(line) - 20  # the next line would fit, but not the last one after it
        path.write_bytes(line * (size // len(line) - 1) + line[:-1] + b" " * (size % len(line)) + b"\n")
        with Server("--record", path, "--record-limit", 1, *QUICK) as server:
            self.assertEqual([server.post("/v1/completions", **fields).status for _ in range(3)], [200] * 3)
            server.stop()
            self.assertEqual(server.log().count("is full (--record-limit); answers are not recorded any more"), 1)
        lines = lines_of(path)
        self.assertEqual(lines[-1], {"$schema": "urn:tern:record-end:1.0.0", "reason": "limit", "limit": 1 << 20})
        self.assertEqual(sum(line["$schema"] == "urn:tern:record-end:1.0.0" for line in lines), 1)
        self.assertLessEqual(path.stat().st_size, 1 << 20)
        path.write_bytes(line * (room // len(line)) + b" " * (room % len(line)) + b"\n")
        self.refused(path, "is full", "--record-limit", 1)

    def test_other_files_are_refused(self):
        other = self.dir / "other"
        other.write_text("What somebody wrote.")
        for path, said in ((other, "is there, and is not a recording"), ("/dev/null", "is not a regular file"), (self.dir / "no/file", "No such file")):
            self.refused(path, said)
        self.assertEqual(other.read_text(), "What somebody wrote.")

    def test_only_when_asked(self):
        self.assertIn("--record", tern_text("help", "serve", "--all"))
        self.assertFalse("`TERN_RECORD`" in tern_text("help", "environment.md"))


if __name__ == "__main__":
    common.main()
