# SPDX-License-Identifier: Apache-2.0
"""tern run and tern chat with --server: against tern serve, and against servers of other makers."""

import json
import signal
import socket
import subprocess
import unittest

import common
from common import suite, tern
from other_server import MODELS, OtherServer, delta, event
from serving import Server
from terminal import Terminal
from test_serve_tls import make_certificate, trusting

HELLO = [event(delta(None, role="assistant")), event(delta("Hel")), event(delta("lo")), event(delta(None, "stop")), event("[DONE]")]
QUESTION = "What is 2+2?"


def needs_client():
    if b"made without libcurl" in tern("run", "--server", "http://127.0.0.1:9", "-p", "x").stderr:
        raise unittest.SkipTest("built without libcurl")


class Asking(common.FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        needs_client()

    def run_at(self, server, *options, **kwargs):
        return tern("run", "--server", server.url, "--chat", "-p", "Hi", *options, **kwargs)

    def text_of(self, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.decode()

    def assert_says(self, server, text, *options):
        self.assertEqual(self.text_of(self.run_at(server, *options)), text + "\n")


class OurServer(Asking):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        common.small_model()
        cls.server = Server(env={"TERN_API_KEY": "key-1"})
        cls.addClassCleanup(cls.server.stop)
        cls.url = f"http://127.0.0.1:{cls.server.port}"
        cls.key = {"TERN_API_KEY": "key-1"}

    def test_texts_are_those_of_this_process(self):
        for options in (("--chat", "-p", QUESTION), ("-p", "Once upon", "-n", 30), ("--tokens", "5,9,12", "-n", 8),
                        ("-p", "Once upon", "-n", 30, "--temp", 1.1, "--seed", 5, "--top-k", 40, "--stop", "the")):
            with self.subTest(options=options):
                here = common.tern_text("run", *options)
                self.assertEqual(self.text_of(tern("run", "--server", self.url, *options, env=self.key)), here)

    def test_json(self):
        result = tern("run", "--server", self.url + "/v1/", "-p", "Once upon", "-n", 5, "--ignore-eos", "--json", env=self.key)
        told = json.loads(result.stdout)
        self.assertEqual((told["stop"], told["generated_tokens"], told["model"]), ("length", 5, "tern-small"))
        body = self.server.ask("POST", "/v1/completions", {"prompt": "Once upon", "max_tokens": 5, "ignore_eos": True, "temperature": 0},
                               {"x-api-key": "key-1", "Content-Type": "application/json"}).json()
        self.assertEqual((told["digest"], told["text"]), (body["tern"]["digest"][0], body["choices"][0]["text"]))

    def test_a_conversation(self):
        words = b"What is 2+2?\nWhat is 3+4?\n/stats\n"
        options = ("--temp", 0)
        result = tern("chat", "--server", self.url, *options, stdin=words, env=self.key)
        self.assertEqual(self.text_of(result), common.tern_text("chat", *options, stdin=b"What is 2+2?\nWhat is 3+4?\n"))
        self.assertIn(f"tern-small at {self.url}/v1", result.stderr.decode())

    def test_a_conversation_is_saved_and_goes_on(self):
        path = self.dir / "talk.json"
        tern("chat", "--server", self.url, stdin=f"What is 2+2?\n/save {path}\n".encode(), env=self.key)
        self.assertEqual([m["role"] for m in json.loads(path.read_text())["messages"]], ["user", "assistant"])
        self.assertFalse(path.with_suffix(".json.session").exists())
        result = tern("chat", "--server", self.url, stdin=f"/load {path}\n/regen\n".encode(), env=self.key)
        self.assertEqual(result.stdout, b"4\n")

    def test_keys(self):
        key = self.dir / "key"
        for text, right in ((" key-1\n", True), ("key-2\n", False)):
            key.write_text(text)
            result = tern("run", "--server", self.url, "--chat", "-p", QUESTION, "--api-key-file", key)
            self.assertEqual(result.returncode == 0, right, result.stderr)
        self.assert_one_line_error(result, contains=(self.url, "401", "this key is not known"))
        self.assert_one_line_error(tern("run", "--server", self.url, "-p", "x"), contains=("401", "a key is needed"))
        for text in ("", "two words\n"):
            key.write_text(text)
            self.assert_one_line_error(tern("run", "--server", self.url, "-p", "x", "--api-key-file", key), contains=("one key",))

    def test_refusals_of_the_server(self):
        result = tern("run", "--server", self.url, "-p", "x " * 2000, env=self.key)
        self.assert_one_line_error(result, contains=("400", "512 positions"))
        result = tern("run", "-m", "gpt-9", "--server", self.url, "-p", "x", env=self.key)
        self.assert_one_line_error(result, contains=("404", "gpt-9"))

    def test_a_socket_in_the_file_system(self):
        path = self.dir / "s"
        with Server(unix=str(path)):
            self.assertEqual(self.text_of(tern("run", "--server", f"unix:{path}", "--chat", "-p", QUESTION)), "4\n")

    def test_https(self):
        certificate, key = make_certificate(self.dir, "it")
        try:
            server = Server("--tls-cert", certificate, "--tls-key", key, tls=trusting(certificate))
        except AssertionError as error:
            raise unittest.SkipTest("built without TLS") from error
        with server:
            url = f"https://127.0.0.1:{server.port}"
            ask = ("run", "--server", url, "--chat", "-p", QUESTION)
            self.assertEqual(self.text_of(tern(*ask, "--tls-ca", certificate)), "4\n")
            self.assert_one_line_error(tern(*ask), contains=(url, "certificate"))

    def test_ctrl_c_ends_an_answer(self):
        home = {"XDG_STATE_HOME": str(self.dir)}
        with Terminal("chat", "--server", self.url, "-n", 100000, env=self.key | home) as chat:
            self.assertIn(f"tern-small at {self.url}/v1", chat.prompt())
            chat.type("Tell me a story.\r")
            chat.wait_for_editing(False)
            chat.expect(r"\n\w")
            chat.type("\x03")
            chat.expect(r"\(stopped\)")
            chat.prompt()
            self.server_is_idle()
            self.assertIn("2 messages", chat.ask("/stats"))
            chat.type("\x04")
            self.assertEqual(chat.end(), 0)

    def server_is_idle(self):
        key = {"x-api-key": "key-1"}
        suite.until(lambda: b"tern_answers_running 0\n" in self.server.get("/metrics", **key).body)

    def prompts(self, *lines):
        path = self.dir / "prompts.txt"
        path.write_text("\n".join(lines) + "\n")
        return ("--prompts-file", path)

    def test_many_prompts(self):
        """Answers come in order, each as it is alone, however many are asked for at once."""
        given = self.prompts(QUESTION, json.dumps({"prompt": "Once upon\na time"}), "", "Luna", *(f"What is {n}+2?" for n in range(9)))
        for options in (("-n", 20), ("-n", 9, "--chat", "--system", "Be brief."), ("-n", 9, "--temp", 1.1, "--seed", 5, "--echo")):
            here = common.tern_text("run", *given, *options)
            for more in ((), ("--parallel", 3), ("--parallel", 100)):
                self.assertEqual(self.text_of(tern("run", "--server", self.url, *given, *options, *more, env=self.key)), here)
        told = tern("run", "--server", self.url, *given, "-n", 9, "--json", env=self.key)
        *lines, run = map(json.loads, self.text_of(told).splitlines())
        alone = json.loads(tern("run", "--server", self.url, "-p", "Luna", "-n", 9, "--json", env=self.key).stdout)
        self.assertEqual({k: v for k, v in lines[2].items() if k in alone and "seconds" not in k and "_ms" not in k},
                         {k: v for k, v in alone.items() if "seconds" not in k and "_ms" not in k})
        self.assertEqual([(line["prompt"], line["round"]) for line in lines], [(i, 1) for i in range(1, 13)])
        self.assertEqual((run["answers"], run["failed"], run["parallel"]), (12, 0, 8))
        self.assertEqual(run["generated_tokens"], sum(line["generated_tokens"] for line in lines))

    def test_a_prompt_that_fails_is_told_in_its_place(self):
        given = self.prompts(QUESTION, "a b " * 600, "Luna")
        result = tern("run", "--server", self.url, *given, "-n", 5, env=self.key)
        self.assertEqual((result.returncode, result.stdout.decode()), (1, "".join(
            common.tern_text("run", "-p", prompt, "-n", 5) for prompt in (QUESTION, "Luna"))))
        [line] = result.stderr.decode().splitlines()
        self.assertIn("prompt 2: ", line)
        self.assertIn("the prompt has 1202 tokens", line)
        told = tern("run", "--server", self.url, *given, "-n", 5, "--json", env=self.key)
        *lines, run = map(json.loads, told.stdout.splitlines())
        self.assertEqual(["error" in line for line in lines], [False, True, False])
        self.assertEqual((told.returncode, run["failed"]), (1, 1))
        for options in (("-p", "x"), ("--tokens", "1")):
            self.assert_one_line_error(tern("run", "--server", self.url, *given, *options), status=2, contains=("--prompts-file",))

    def test_an_interrupt_ends_many(self):
        given = self.prompts(QUESTION, *40 * ["Once upon"])
        process = subprocess.Popen(
            common.command("run", "--server", self.url, *given, "-n", 100000, "--parallel", 4),
            env=common.clean_environment(**self.key), stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate()
        self.assertEqual(process.returncode, 130)
        self.server_is_idle()

    def test_an_interrupt_ends_a_run(self):
        process = subprocess.Popen(
            common.command("run", "--server", self.url, "-p", "Once upon", "-n", 100000, "--ignore-eos"),
            env=common.clean_environment(**self.key), stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        process.stdout.read(20)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate()
        self.assertEqual((process.returncode, out[-1:]), (130, b"\n"), errors)
        self.server_is_idle()


class OtherServers(Asking):
    def test_as_many_as_asked_for_are_under_way(self):
        (self.dir / "p").write_text("x\n" * 9)
        with OtherServer(HELLO, together=3) as server:
            result = tern("run", "--server", server.url, "--chat", "--prompts-file", self.dir / "p", "--parallel", 3)
            self.assertEqual((self.text_of(result), server.most), (9 * "Hello\n", 3))
        with OtherServer(HELLO, full=10) as server:
            result = tern("run", "--server", server.url, "--chat", "--prompts-file", self.dir / "p")
            self.assertEqual((self.text_of(result), len(server.asked)), (9 * "Hello\n", 19))
        with OtherServer([b'{"error": "busy"}'], status=503) as server:
            result = tern("run", "--server", server.url, "--chat", "--prompts-file", self.dir / "p")
            self.assertEqual((result.returncode, result.stderr.decode().count("503: busy")), (1, 9))

    def test_what_is_asked(self):
        with OtherServer(HELLO) as server:
            self.assert_says(server, "Hello", "--api-key", "k", "--system", "Be brief.", "-n", 7, "--stop", "a", "--stop", "b")
            ask = server.asked[0]
            self.assertEqual(ask, {
                "model": "other-model", "stream": True, "stream_options": {"include_usage": True}, "max_tokens": 7, "seed": 42,
                "temperature": 0.0, "stop": ["a", "b"],
                "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]})
            self.assertEqual([path for path, _ in server.seen], ["/v1/models", "/v1/chat/completions"])
            self.assertTrue(all(headers["Authorization"] == "Bearer k" for _, headers in server.seen))

    def test_paths_names_and_prompts(self):
        with OtherServer([event({"choices": [{"text": "yes", "finish_reason": "stop"}]})], models=None) as server:
            self.assertEqual(self.text_of(tern("run", "--server", server.url + "/api/v3/", "A prompt")), "yes\n")
            self.assertEqual([path for path, _ in server.seen], ["/api/v3/models", "/api/v3/completions"])
            self.assertEqual((server.asked[0]["prompt"], server.asked[0]["model"]), ("A prompt", "default"))
            self.assertEqual(self.text_of(tern("run", "-m", "big", "--server", server.url, "-p", "x")), "yes\n")
            self.assertEqual((server.asked[1]["model"], len(server.seen)), ("big", 3))

    def test_streams_of_all_kinds(self):
        whole = b"".join(HELLO)
        crlf = whole.replace(b"\n", b"\r\n")
        two = event('{"choices": [{"index": 0,\ndata: "delta": {"content": "Hello"}, "finish_reason": "stop"}]}')
        usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}, "timings": {"x": 1.5}}
        streams = {
            "in pieces of one byte": [bytes([b]) for b in crlf],
            "carriage returns": [whole.replace(b"\n", b"\r")],
            "split between CR and LF": [crlf[: crlf.index(b"\n")], crlf[crlf.index(b"\n"):]],
            "comments": [b": ping\n\n", HELLO[0], b":\n: \n\n", *HELLO[1:]],
            "other fields": [b"id: 7\nevent: message\nretry: 5\n", whole.replace(b"data: ", b"event: x\ndata: ")],
            "no blank after the colon": [whole.replace(b"data: ", b"data:")],
            "data of two lines": [two, event("[DONE]")],
            "the same, CR LF": [(two + event("[DONE]")).replace(b"\n", b"\r\n")],
            "no [DONE]": HELLO[:-1],
            "no empty line at the end": [*HELLO[:3], HELLO[3].rstrip(b"\n")],
            "no reason, but [DONE]": [*HELLO[:3], HELLO[4]],
            "usage and things unheard of": [*HELLO[:4], event(usage | {"x": [None, {}]}), HELLO[4]],
            "thoughts and nulls": [event(delta(None, reasoning_content="hm", tool_calls=None)), event({"choices": None}), event({"choices": [{"index": 0, "delta": None, "finish_reason": None}]}), *HELLO],
        }
        for name, pieces in streams.items():
            with self.subTest(name), OtherServer(pieces) as server:
                self.assert_says(server, "Hello")

    def test_a_reply_that_is_no_stream(self):
        document = {"choices": [{"message": {"role": "assistant", "content": "Hello"}, "finish_reason": "length"}],
                    "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
        with OtherServer([json.dumps(document).encode()], kind="application/json; charset=utf-8") as server:
            told = json.loads(self.run_at(server, "--json").stdout)
        self.assertEqual((told["text"], told["stop"], told["prompt_tokens"], told["generated_tokens"]), ("Hello", "length", 3, 2))

    def test_errors_of_all_shapes(self):
        shapes = {
            '{"error": {"message": "model is loading", "type": "x", "code": 503}}': "model is loading",
            '{"error": "no such model"}': "no such model",
            '{"object": "error", "message": "too long", "code": 400}': "too long",
            '{"detail": "Not Found"}': "Not Found",
            '{"detail": [{"loc": ["body", "n"], "msg": "n is wrong", "type": "t"}]}': "n is wrong",
            '{"message": "slow down\\nplease"}': "slow down",
            "<html><head><title>502 Bad Gateway</title></head>\n<body>x": "502 Bad Gateway",
            "upstream went away\nsecond line": "upstream went away",
            "": "it failed",
            "{}": "it failed",
            '{"error": null}': "it failed",
            '{"error": {"message": "\\u001b[31mred"}}': "[31mred",
        }
        for body, message in shapes.items():
            with self.subTest(body), OtherServer([body.encode()], status=500, kind="application/json") as server:
                result = self.run_at(server)
                self.assert_one_line_error(result, contains=(server.url, ": 500: ", message))
                self.assertNotIn(b"second", result.stderr)
                self.assertNotIn(b"\x1b", result.stderr)

    def test_how_much_of_an_error_is_read_and_shown(self):
        """64 KiB are read, which is too little for the last bracket of the second document; 300 bytes are shown."""
        document = '{"message": "m"}'
        for body, message in ((document.rjust(64 << 10), "m"), (document.rjust((64 << 10) + 1), document[:-1]),
                              ("x" * 300 + "y", "x" * 300)):
            with OtherServer([body.encode()], status=500, kind="application/json") as server:
                said = self.run_at(server).stderr.decode()
                self.assertTrue(said.endswith(f": 500: {message}\n"), (len(body), said))

    def test_when_to_ask_again(self):
        with OtherServer([b'{"error": {"message": "busy"}}'], status=429, headers=[("Retry-After", "7")]) as server:
            self.assert_one_line_error(self.run_at(server), contains=("429: busy (again in 7 s)",))

    def test_redirections_are_not_followed(self):
        with OtherServer(HELLO) as other, OtherServer(status=302, headers=[("Location", other.url + "/v1/chat/completions")]) as server:
            self.assert_one_line_error(self.run_at(server, "--api-key", "k"), contains=("302", "another place"))
            self.assertEqual(other.seen, [])

    def test_errors_in_the_middle(self):
        faults = {
            "cuda is gone": [*HELLO[:3], event({"error": {"message": "cuda is gone", "code": 500}})],
            "it broke": [*HELLO[:3], event({"object": "error", "message": "it broke"})],
            "ended before the answer did": HELLO[:3],
            "line 1": [*HELLO[:3], event("{broken")],
            "sent what is not an answer": [*HELLO[:3], event("[1]")],
        }
        for message, pieces in faults.items():
            with self.subTest(message), OtherServer(pieces) as server:
                result = self.run_at(server)
                errors = result.stderr.decode()
                self.assertEqual((result.returncode, result.stdout), (1, b"Hello\n"), errors)
                self.assertEqual(len(errors.splitlines()), 1)
                self.assertIn(message, errors)
                self.assertIn(server.url, errors)

    def test_a_server_that_falls_silent(self):
        with OtherServer(HELLO, pause=30) as server:
            result = self.run_at(server, "--timeout", 1)
            self.assertEqual(result.returncode, 1)
            self.assertIn("nothing came for 1 seconds (--timeout)", result.stderr.decode())

    def test_nobody_is_there(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # and does not listen
            url = f"http://127.0.0.1:{taken.getsockname()[1]}"
            self.assert_one_line_error(tern("run", "--server", url, "-p", "x"), contains=(url, "cannot be asked"))
            result = tern("chat", "--server", url, stdin=b"x\n")
            self.assertEqual((result.returncode, result.stdout, len(result.stderr.splitlines())), (1, b"", 1))

    def test_what_is_no_url(self):
        for url in ("", "localhost:8080", "ftp://x", "http://", "http:///v1", "unix:", "http://user:word@x", "http://x?y", "http://a b"):
            self.assert_one_line_error(tern("run", "--server", url, "-p", "x"), status=2, contains=("--server",))

    def test_what_only_a_model_here_can_do(self):
        for options in (("--receipt", self.dir / "r"), ("--rounds", 2), ("--logit-bias", "1=2"), ("--strict",), ("--stop-token", 3)):
            result = tern("run", "--server", "http://127.0.0.1:9", "-p", "x", *options)
            self.assert_one_line_error(result, status=2, contains=(options[0], "--server"))

    def test_a_conversation_goes_on_after_an_error(self):
        with OtherServer([b'{"error": "busy"}'], status=503, models=MODELS) as server:
            result = tern("chat", "--server", server.url, stdin=b"one\ntwo\n")
        self.assertEqual((result.returncode, result.stderr.decode().count("503: busy")), (1, 2))
        self.assertEqual([len(ask["messages"]) for ask in server.asked], [1, 1])

    def test_chat_leaves_sampling_to_the_server(self):
        with OtherServer(HELLO) as server:
            result = tern("chat", "--server", server.url, "--top-p", 0.5, stdin=b"one\n/seed 7\ntwo\n/regen\n")
            self.assertEqual(result.stdout, b"Hello\nHello\nHello\n")
        self.assertTrue(all("temperature" not in ask and ask["top_p"] == 0.5 for ask in server.asked))
        self.assertEqual([ask["seed"] for ask in server.asked], [42, 7, 8])
        self.assertEqual([len(ask["messages"]) for ask in server.asked], [1, 3, 3])


if __name__ == "__main__":
    common.main()
