# SPDX-License-Identifier: Apache-2.0
"""tern serve: where it listens (as Ollama, on a socket of systemd's) and the paths that it answers (a prefix, slashes at
the end, Azure's)."""

import os
import socket
import tempfile
from pathlib import Path

import common
from serving import Server
from test_serve import QUESTION, Served

HAND_OVER = ("bash", "-c", 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$@" 3<&"$HANDED"', "bash")


def refused(*args, env=None):
    """The message of a start that is refused as wrong usage."""
    result = common.tern("serve", *args, env=env)
    assert result.returncode == 2, result
    return result.stderr.decode()


def content(reply):
    return reply.json()["choices"][0]["message"]["content"]


class Paths(Served):
    def test_slashes_at_the_end(self):
        self.assertEqual(content(self.server.post("/v1/chat/completions/", messages=[{"role": "user", "content": QUESTION}])), "4")
        self.assertEqual(self.server.get("/v1/models//").json()["object"], "list")
        self.assertEqual(self.server.get("/v1/").status, 200)
        self.assertEqual(self.server.get("/").status, 200)

    def test_paths_of_azure(self):
        user = [{"role": "user", "content": QUESTION}]
        for path in ("/openai/deployments/tern-small/chat/completions?api-version=2024-10-21", "/openai/v1/chat/completions"):
            self.assertEqual(content(self.server.post(path, messages=user)), "4")
        self.refused(self.server.post("/openai/deployments/other/chat/completions", messages=user), 404, "model")
        self.assertEqual(self.server.post("/openai/deployments//chat/completions", messages=user).status, 404)
        self.assertEqual(self.server.get("/openai/deployments/tern-small").status, 404)

    def test_bodies_are_not_packed(self):
        for coding in ("gzip", "br", "deflate, gzip"):
            reply = self.server.post("/v1/chat/completions", {"Content-Encoding": coding}, messages=[])
            self.assertIn(f"Content-Encoding: {coding}", self.refused(reply, 415)["message"])
        self.assertEqual(self.server.post("/tokenize", {"Content-Encoding": "identity"}, content="a").status, 200)


class Keys(common.TernTest):
    def test_a_key_of_azure(self):
        with Server(env={"TERN_API_KEY": "one"}) as server:
            self.assertEqual(server.post("/tokenize", {"api-key": "one"}, content="a").status, 200)
            self.assertEqual(server.post("/tokenize", {"api-key": "two"}, content="a").status, 401)


class Prefix(common.TernTest):
    def test_a_prefix(self):
        with Server("--api-prefix", "/models/llm") as server:
            self.assertIn("/models/llm/v1\n", server.greeting[0])
            self.assertEqual(server.get("/models/llm/v1/models").json()["object"], "list")
            self.assertEqual(server.get("/models/llm/health/").status, 200)
            self.assertIn("/models/llm/v1/chat/completions'", server.get("/models/llm").body.decode())
            error = server.post("/models/llm/api/chat", messages=3).json()["error"]
            self.assertEqual(error, "messages must be an array of messages")
            for path in ("/v1/models", "/models/llmx/v1/models", "/"):
                reply = server.get(path)
                self.assertEqual((reply.status, reply.json()["error"]["message"]), (404, "paths of this server begin with /models/llm"))

    def test_prefixes_that_are_none(self):
        for prefix in ("llm", "/llm/", "/", "/a//b", "/a b"):
            self.assertIn("--api-prefix", refused("--port", 0, "--api-prefix", prefix))


class AsOllama(common.TernTest):
    def greeting(self, *options, host=None):
        with Server("--ollama", *options, place=(), env={"OLLAMA_HOST": host} if host else {}) as server:
            self.assertEqual(server.get("/").body, b"Ollama is running")
            head = server.ask("HEAD", "/")
            self.assertEqual((head.status, head.body), (200, b""))
            self.assertIn("text/html", server.get("/", Accept="text/html").headers["content-type"])
            return server.greeting[0].split(" at ")[1].strip()

    def test_where_it_listens(self):
        own = f"127.{os.getpid() >> 16 & 255}.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"  # other tests have other processes
        self.assertEqual(self.greeting(host=own), f"http://{own}:11434/v1")
        self.assertRegex(self.greeting("--port", "0", host=own), f"^http://{own}:(?!11434)")
        self.assertRegex(self.greeting("--host", "127.0.0.1", host=f"http://{own}:0/"), "^http://127.0.0.1:(?!11434)")

    def test_without_being_asked(self):
        with Server(env={"OLLAMA_HOST": "192.0.2.1:1"}) as server:
            self.assertNotEqual(server.get("/").body, b"Ollama is running")

    def test_hosts_that_are_none(self):
        for host in ("localhost:a", "localhost:99999", "https://localhost", "[::1]x"):
            self.assertIn("OLLAMA_HOST", refused("--ollama", env={"OLLAMA_HOST": host}))


class HandedOver(common.TernTest):
    def serve(self, listening, *options):
        env = {"HANDED": str(listening.fileno())}
        return Server(*options, place=(), begin=HAND_OVER, env=env, keep=(listening.fileno(),))

    def test_a_port(self):
        with socket.create_server(("127.0.0.1", 0)) as listening:
            with self.serve(listening) as server:
                self.assertEqual(server.port, listening.getsockname()[1])
                self.assertEqual(content(server.chat(QUESTION)), "4")

    def test_a_socket_in_the_file_system_stays(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listening:
            path = str(Path(folder) / "tern.socket")
            listening.bind(path)
            listening.listen()
            with self.serve(listening) as server:
                self.assertIn(f"unix:{path}", server.greeting[0])
                server.unix = path
                self.assertEqual(server.get("/health").status, 200)
                server.stop()
                self.assertTrue(Path(path).exists())

    def test_of_another_process(self):
        """A variable that was meant for a parent says nothing."""
        with Server(env={"LISTEN_PID": "1", "LISTEN_FDS": "1"}) as server:
            self.assertEqual(server.get("/health").status, 200)

    def test_what_is_no_listening_socket(self):
        with socket.socket() as other, self.assertRaisesRegex(AssertionError, "descriptor 3 is not a socket that listens"):
            self.serve(other)
        with socket.create_server(("127.0.0.1", 0)) as listening, self.assertRaisesRegex(AssertionError, "LISTEN_FDS: '2'"):
            begin = tuple(word.replace("LISTEN_FDS=1", "LISTEN_FDS=2") for word in HAND_OVER)
            Server(place=(), begin=begin, env={"HANDED": str(listening.fileno())}, keep=(listening.fileno(),))


if __name__ == "__main__":
    common.main()
