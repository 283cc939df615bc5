# SPDX-License-Identifier: Apache-2.0
"""Tests of tern chat from a pipe: its commands and the files that it saves."""

import contextlib
import fcntl
import json
import os
import re
import signal
import stat
import struct
import subprocess
import tempfile
import termios
from pathlib import Path

import common
import gguf_edit
import tool_model
from common import suite, tern, tern_json, tern_text
from terminal import Terminal

ANSWERS = {"What is 2+2?": "4", "What is 17+25?": "42", "What is 3+3?": "6"}
SAMPLED = ("--temp", 1.5, "--seed", 9, "--ignore-eos", "-n", 30)


def talk(*lines, options=(), env=None):
    """A chat from a pipe; the result of the process."""
    return tern("chat", *options, stdin="".join(f"{line}\n" for line in lines).encode(), env=env)


def waiting(pipe):
    """Bytes of a pipe that its reader has not taken yet."""
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]


class Chat(common.TernTest):
    @classmethod
    def setUpClass(cls):
        common.small_model()

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.state = Path(self.folder.name) / "state"
        self.saved = Path(self.folder.name) / "chat.json"

    def terminal(self, *options, **env):
        return Terminal("chat", *options, env={"XDG_STATE_HOME": str(self.state)} | env)


class Pipe(Chat):
    def test_line_in_answer_out(self):
        result = talk(*ANSWERS)
        self.assertEqual(result.stdout.decode().splitlines(), list(ANSWERS.values()))
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        self.assertFalse(self.state.exists())

    def test_each_answer_is_that_of_the_whole_conversation(self):
        """A turn keeps part of the one before without changing a bit, with every way of sampling."""
        options = ("--temp", 1.2, "--seed", 3, "-n", 12, "--repeat-penalty", 1.3)
        lines = [*ANSWERS, "What is the capital of Japan?"]
        whole = talk(*lines, options=options).stdout
        again = talk(*lines, options=(*options, "--threads", 1, "--isa", "scalar", "--batch", 3))
        self.assertEqual(again.stdout, whole)
        first = talk(lines[0], options=options).stdout
        self.assertTrue(whole.startswith(first))
        alone = tern_text("run", "--chat", "-p", lines[0], *options)
        self.assertEqual(alone.encode(), first)

    def test_only_new_tokens_are_evaluated(self):
        stats = talk(*ANSWERS, "/stats").stderr.decode()
        known, new = map(int, re.search(r"(\d+) tokens of .* were known \| prompt (\d+)", stats).groups())
        self.assertGreater(known, 25)
        self.assertLess(new, 14)

    def test_several_lines(self):
        joined = tern_json("run", "--chat", "-p", "What is\n2+2?", "-n", 20)["text"]
        for lines in (["What is\\", "2+2?"], ['"""', "What is", "2+2?", '"""']):
            with self.subTest(lines=lines):
                self.assertEqual(talk(*lines, options=("-n", 20)).stdout.decode(), joined + "\n")
        unfinished = tern("chat", "-n", 20, stdin=b'"""\nWhat is\n2+2?')
        self.assertEqual(unfinished.stdout.decode(), joined + "\n")

    def test_slash(self):
        self.assertEqual(talk("//x", options=("-n", 9)).stdout.decode(),
                         tern_json("run", "--chat", "-p", "/x", "-n", 9)["text"] + "\n")

    def test_set(self):
        """What /set says is done: the answer is that of the flags with the same values."""
        flags = ("--temp", 1.5, "--top-k", 20, "--repeat-penalty", 1.25, "--seed", 7, "-n", 20)
        sets = ("/set temp 1.5", "/set top_k = 20", "/set repeat-penalty 1.25", "/set seed 7", "/set max-tokens 20")
        asked = "Once upon a time"
        by_flag = talk(asked, options=("--ignore-eos", *flags)).stdout
        result = talk(*sets, asked, options=("--ignore-eos",))
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, by_flag, b""))
        shown = talk(*sets[:2], "/set").stderr.decode()
        self.assertRegex(shown, r"temperature +1\.5 +/set\n +top-k +20 +/set\n")
        self.assertIn("names of /set: seed, system, max-tokens, wrap, temp, top-k", shown)

    def test_system_command(self):
        """Another system prompt is that of the option, in the middle of a conversation too."""
        model = common.synth("bitnet-tiny", self.folder.name)
        options = ("-m", model, "-n", 12, "--ignore-eos", "--greedy")
        told = talk("hello", options=(*options, "--system", "Be brief.")).stdout
        self.assertEqual(talk("/system Be brief.", "hello", options=options).stdout, told)
        self.assertEqual(talk("/set system Be brief.", "hello", options=options).stdout, told)
        without = talk("hello", options=options).stdout
        self.assertNotEqual(told, without)
        taken = talk('/system ""', "hello", options=(*options, "--system", "Be brief.")).stdout
        self.assertEqual(taken, without)
        lines = ("x", "/system Be brief.", f"/save {self.saved}", "/system")
        shown = talk(*lines, options=(*options, "--system", "Be long.")).stderr.decode()
        self.assertIn("Be brief.", shown)
        messages = json.loads(self.saved.read_text())["messages"]
        self.assertEqual([m["role"] for m in messages], ["system", "user", "assistant"])
        self.assertEqual(messages[0]["content"], "Be brief.")

    def test_stop(self):
        whole = talk("Once upon a time", options=SAMPLED).stdout.decode()[:-1]
        stop = whole[20:24]
        cut = talk("Once upon a time", options=(*SAMPLED, "--stop", stop)).stdout.decode()
        self.assertEqual(cut, whole[: whole.index(stop)] + "\n")

    def test_bad_commands_and_bytes(self):
        for lines, hint in (
            (["/nonsense"], "see /help"),
            (["/claer"], "did you mean /clear?"),
            (["/save"], "usage: /save FILE"),
            (["/clear now"], "usage: /clear"),
            (["/regen"], "no answer yet"),
            (["/set temp"], "usage: /set NAME VALUE"),
            (["/set temp cold"], "/set temp wants a number from 0 to 1000, not 'cold'"),
            (["/set colour 3"], "colour is not a name"),
            (["/set model 3"], "model is not a name"),
            (["/set max-tokens 0"], "from 1 to"),
            (["/set wrap 3"], "on or off"),
            (["/seed -1"], "/seed wants a number from 0"),
            (["a\0b"], "NUL byte"),
            (["/load /nonexistent/x"], "/nonexistent/x"),
            (["/save /nonexistent/x"], "/nonexistent/x"),
        ):
            with self.subTest(lines=lines):
                result = talk(*lines, "What is 2+2?")
                self.assertEqual((result.returncode, result.stdout), (1, b"4\n"))
                self.assertIn(hint, result.stderr.decode())
                self.assertEqual(len(result.stderr.splitlines()), 1)
        broken = tern("chat", "-n", 3, stdin=b"\xff\xfe\nWhat is 2+2?\n")
        self.assertEqual(broken.returncode, 0)
        broken.stdout.decode()

    def test_context_end(self):
        result = talk("word " * 600, "What is 2+2?")
        self.assertEqual((result.returncode, result.stdout), (1, b"4\n"))
        self.assertRegex(result.stderr.decode(), r"is \d+ tokens long, .* room for 512: /trim .*/clear .*--ctx")

    def test_no_room_for_a_question(self):
        result = talk("What is 2+2?", "What is 3+3?", "/clear", "What is 3+3?", options=("--ctx", 16))
        self.assertEqual((result.returncode, result.stdout), (1, b"4\n6\n"))
        self.assertIn("/clear begins a new one", result.stderr.decode())

    def test_trim(self):
        """The older half goes, and the rest is answered as if it had been the whole conversation."""
        lines = ["What is 2+2?", "What is 17+25?", "What is 3+3?", "What is 5+5?"]
        sampled = ("--temp", 1.2, "--seed", 3, "-n", 12)
        for n, left in ((1, 0), (2, 1), (3, 1)):
            with self.subTest(questions=n):
                trimmed = talk(*lines[:n], "/trim", f"/save {self.saved}", lines[3], options=sampled)
                self.assertEqual(trimmed.returncode, 0, trimmed.stderr)
                kept = json.loads(self.saved.read_text())["messages"]
                self.assertEqual([m["content"] for m in kept[::2]], lines[n - left : n])
                Path(f"{self.saved}.session").unlink()
                again = talk(f"/load {self.saved}", lines[3], options=sampled)
                self.assertEqual(trimmed.stdout.splitlines()[-1:], again.stdout.splitlines()[-1:])
                self.saved.unlink()
        self.assertEqual(talk("/trim", "What is 2+2?").stdout, b"4\n")

    def test_full_context_drops_the_oldest(self):
        """Every question is answered as a conversation of the rest would be."""
        lines = ["What is 2+2?", "What is 3+3?", "What is 17+25?"] * 8
        full = talk(*lines, options=("--ctx", 96))
        self.assertEqual(full.returncode, 1)
        self.assertIn("--on-full drop", full.stderr.decode())
        options = ("--ctx", 96, "--on-full", "drop", "--ignore-eos", "-n", 8)
        dropped = talk(*lines, f"/save {self.saved}", options=options)
        self.assertEqual(dropped.returncode, 0, dropped.stderr)
        told = re.findall(r"the oldest (\d+) questions are forgotten", dropped.stderr.decode())
        left = json.loads(self.saved.read_text())["messages"]
        self.assertEqual(sum(map(int, told)) + len(left) // 2, len(lines))
        self.assertGreater(len(told), 2)
        self.assertLess(len(told), 12, "half of the context is free afterwards")

    def test_answers_behind_what_was_dropped(self):
        """The answers are those of a conversation that never had more, and the system prompt stays."""
        system = ("--system", "Be kind.")
        model = common.synth("llama-tiny-f16", self.folder.name)
        options = ("-m", model, "--greedy", "--ctx", 256, "--on-full", "drop", "--ignore-eos", "-n", 8, *system)
        lines, told = [], b""
        while not told:
            for path in self.saved.parent.glob(f"{self.saved.name}*"):
                path.unlink()
            lines.append(f"question {len(lines)}")
            told = talk(*lines, f"/save {self.saved}", options=options).stderr
            self.assertLess(len(lines), 30)
        saved = json.loads(self.saved.read_text())
        self.assertEqual(saved["messages"][0]["role"], "system")
        self.assertEqual(saved["messages"][-2]["content"], lines[-1])
        answer = saved["messages"].pop()
        del saved["messages"][-1]
        Path(f"{self.saved}.session").unlink()
        self.saved.write_text(json.dumps(saved))
        again = talk(f"/load {self.saved}", lines[-1], f"/save {self.saved}2", options=options)
        self.assertEqual((again.returncode, again.stderr), (0, b""))
        fresh = json.loads(Path(f"{self.saved}2").read_text())["messages"]
        self.assertEqual(fresh[-1], answer)

    def test_one_question_too_long_to_make_room_for(self):
        result = talk("What is 2+2?", "word " * 600, "What is 3+3?", options=("--on-full", "drop"))
        self.assertEqual((result.returncode, result.stdout), (1, b"4\n6\n"))
        self.assertIn("tokens long", result.stderr.decode())

    def test_system_prompt(self):
        with tempfile.TemporaryDirectory() as folder:
            model = common.synth("bitnet-tiny", folder)
            options = ("-m", model, "-n", 12, "--ignore-eos", "--greedy")
            without = talk("hello", options=options).stdout
            told = talk("hello", options=(*options, "--system", "Be brief.")).stdout
            self.assertNotEqual(told, without)
            cleared = talk("x", "/clear", "hello", options=(*options, "--system", "Be brief."))
            self.assertTrue(cleared.stdout.endswith(told), "/clear keeps the system prompt")
            run = tern_text("run", "--chat", "-p", "hello", "--system", "Be brief.", *options)
            self.assertEqual(run.encode(), told)
            refused = tern("run", "-p", "hello", "--system", "Be brief.", "-m", model)
            self.assert_one_line_error(refused, 2, ["--chat"])
            for_good = tern("run", "-p", "a", "-n", 1, "-m", model, env={"TERN_SYSTEM": "Be brief."})
            self.assertEqual(for_good.returncode, 0, for_good.stderr)

    def test_interrupt(self):
        """The text so far is printed, and the exit status is that of the signal."""
        with subprocess.Popen(
            common.command("chat"),
            env=common.clean_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            process.stdin.write(b"What is 2+2?\n")
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), b"4\n")
            process.send_signal(signal.SIGINT)
            process.wait()
            self.assertEqual((process.returncode, process.stderr.read()), (130, b""))

    def test_interrupt_while_the_question_is_read(self):
        """A long question does not have to be read to its end."""
        model = common.synth("smollm2-135m", self.folder.name)
        with subprocess.Popen(
            common.command("chat", "-m", model, "-n", 1, "--ignore-eos"),
            env=common.clean_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            process.stdin.write(b"hello\n")
            process.stdin.flush()
            self.assertNotEqual(process.stdout.readline(), b"")
            process.stdin.write(b"word " * 1000 + b"\n")
            process.stdin.flush()
            suite.until(lambda: waiting(process.stdin) == 0)
            process.send_signal(signal.SIGINT)
            rest, errors = process.stdout.read(), process.stderr.read()
            self.assertEqual((process.wait(), rest.strip(), errors), (130, b"", b""))

    def test_interrupt_while_the_answer_is_written(self):
        """Nothing of the answer is lost, and a slow reader does not make it an error."""
        out, into = os.pipe()
        os.set_blocking(into, False)
        filled = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                filled += os.write(into, b"." * 512)
        os.set_blocking(into, True)
        with subprocess.Popen(
            common.command("chat"),
            env=common.clean_environment(),
            stdin=subprocess.PIPE,
            stdout=into,
            stderr=subprocess.PIPE,
        ) as process, open(out, "rb") as reader:
            os.close(into)
            process.stdin.write(b"What is 2+2?\n")
            process.stdin.flush()
            suite.until(lambda: waiting(process.stdin) == 0)
            suite.until_asleep(process.pid)  # it waits for room in the pipe
            process.send_signal(signal.SIGINT)
            suite.until_asleep(process.pid)
            said = reader.read()
            process.wait()
            self.assertEqual((process.returncode, process.stderr.read(), said[filled:]), (130, b"", b"4\n"))

    def test_output_closed(self):
        with subprocess.Popen(
            common.command("chat"),
            env=common.clean_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            process.stdout.close()
            process.stdin.write(b"What is 2+2?\n" * 3)
            process.stdin.close()
            self.assertEqual(process.stderr.read(), b"")
            process.wait()

    def test_model_without_a_chat_format(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "m.gguf"
            data = bytearray(common.synth("llama-tiny-f16", folder).read_bytes())
            at = data.index(b"tokenizer.chat_template")
            data[at : at + 9] = b"unknown__"
            path.write_bytes(data)
            result = talk("hello", options=("-m", path))
            self.assert_one_line_error(
                result, contains=[str(path), "no chat format", "--chat-template NAME", "tern run"]
            )

    def with_template(self, text):
        file = gguf_edit.read(common.small_model())
        file["tokenizer.chat_template"] = gguf_edit.string(text)
        path = Path(self.folder.name) / "templated.gguf"
        path.write_bytes(file.to_bytes())
        return path

    def test_a_template_that_cannot_be_run(self):
        """The message names the part that cannot be run and its line, and --chat-template says what to do."""
        model = self.with_template("{{ bos_token }}\n{% include 'other' %}")
        self.assert_one_line_error(talk("hello", options=("-m", model)), contains=["--chat-template NAME"])
        refused = tern("run", "--chat", model, "hello")
        self.assert_one_line_error(refused, contains=["line 2", "'include'", "--chat-template NAME"])
        named = talk("What is 2+2?", options=("-m", model, "--chat-template", "qa", "--greedy"))
        self.assertEqual((named.returncode, named.stdout), (0, b"4\n"))
        run = tern_text("run", "--chat", "--chat-template", "qa", model, "What is 2+2?")
        self.assertEqual(run, "4\n")

    def test_a_message_that_is_left_out(self):
        """The small model's template has no place for a system message; one line says so."""
        for arguments in (("run", "--chat", "-p", "What is 2+2?"), ("chat",)):
            said = tern(*arguments, "--greedy", "--system", "Be brief.", stdin=b"What is 2+2?\n")
            self.assertEqual((said.returncode, said.stdout), (0, b"4\n"), said.stderr)
            self.assertIn("message 0, of the role system", said.stderr.decode())
            self.assertEqual(said.stderr.count(b"\n"), 1)

    def test_messages_in_channels(self):
        """Only the text of messages is shown and kept; the marks and the thinking of an answer are neither."""
        model = Path(self.folder.name) / "channels.gguf"
        template = (common.ROOT / "tests/templates/channels.jinja").read_text()
        opened = template.replace("{{- '<|start|>assistant' if", "{{- '<|start|>assistant<|channel|>analysis<|message|>' if")
        marks = [f"<|{name}|>" for name in ("start", "channel", "message", "end", "call", "return")]
        tool_model.write(model, opened, *((mark, 3) for mark in marks))
        tokens = gguf_edit.read(model).texts("tokenizer.ggml.tokens")
        biases = [f"--logit-bias={tokens.index(mark)}={10.5 if mark == '<|end|>' else -100}" for mark in marks]
        how = ("-m", model, "--temp", 1.2, "--top-p", 1, "--seed", 3, "-n", 40, "--ignore-eos", *biases)
        raw = tern_text("run", "--chat", *how, "-p", "What is 2+2?").removesuffix("\n")
        thought, *texts = raw.split("<|end|>")
        self.assertTrue(thought and "".join(texts), raw)
        said = "\n\n".join(text for text in texts if text)
        result = talk("What is 2+2?", f"/save {self.saved}", "And 3+3?", options=how)
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        self.assertEqual(json.loads(self.saved.read_text())["messages"][1]["content"], said)
        self.assertTrue(result.stdout.decode().startswith(said + "\n"))

    def test_names_of_templates(self):
        """Every name that the option takes is a format, and takes the place of the model's own."""
        told = re.search(r"--chat-template NAME\|FILE\s+(.*?)\n +--", tern_text("help", "inspect"), re.S)
        names = re.search(r": auto (.*) \[auto\]", " ".join(told[1].split()))[1].split()
        self.assertIn("chatml", names)
        for name in names:
            said = tern_json("inspect", common.small_model(), "--chat-template", name)
            self.assertEqual(said["tokenizer"]["chat_format"], name)
        self.assert_one_line_error(talk("x", options=("--chat-template", "vicuna")), 2, names)
        without = tern("run", "-p", "x", "--chat-template", "qa")
        self.assert_one_line_error(without, 2, ["use --chat too"])


class Regenerate(Chat):
    def test_next_seed(self):
        """The second answer to a question uses the next seed; the first one is forgotten."""
        options = (*SAMPLED[:2], *SAMPLED[4:])
        first, second, third = (
            talk("Once upon a time", options=(*options, "--seed", seed)).stdout for seed in (9, 10, 11)
        )
        self.assertEqual(len({first, second, third}), 3)
        asked = talk("Once upon a time", "/regen", "/regen", options=(*options, "--seed", 9)).stdout
        self.assertEqual(asked, first + second + third)

    def test_next_question_has_the_first_seed_again(self):
        options = ("--temp", 1.2, "--seed", 4, "-n", 10)
        plain = talk("What is 2+2?", "/clear", "What is 3+3?", options=options).stdout
        asked = talk("What is 2+2?", "/regen", "/clear", "What is 3+3?", options=options).stdout
        self.assertEqual(asked.splitlines()[-1], plain.splitlines()[-1])

    def test_greedy(self):
        said = talk("What is 17+25?", "/regen").stdout
        self.assertEqual(said, b"42\n42\n")


class Saved(Chat):
    LINES = ["What is 2+2?", "Once upon a time"]

    def test_goes_on_with_the_same_bits(self):
        whole = talk(*self.LINES, "Tell me more", "/regen", options=SAMPLED).stdout
        first = talk(*self.LINES, f"/save {self.saved}", options=SAMPLED).stdout
        for drop_session in (False, True):
            if drop_session:
                Path(f"{self.saved}.session").unlink()
            rest = talk(f"/load {self.saved}", "Tell me more", "/regen", "/stats", options=SAMPLED)
            self.assertEqual(rest.returncode, 0, rest.stderr)
            self.assertEqual(first + rest.stdout, whole)

    def test_session_is_used(self):
        whole = talk(*self.LINES, f"/save {self.saved}", "And?", "/stats").stderr.decode()
        loaded = talk(f"/load {self.saved}", "And?", "/stats").stderr.decode()
        known = r"last answer: \d+ tokens"
        self.assertEqual(re.search(known, loaded).group(), re.search(known, whole).group())
        self.assertNotIn(" 0 tokens", loaded)

    def test_attempts_are_kept(self):
        whole = talk(*self.LINES, "/regen", "/regen", options=SAMPLED).stdout
        first = talk(*self.LINES, "/regen", f"/save {self.saved}", options=SAMPLED).stdout
        rest = talk(f"/load {self.saved}", "/regen", options=SAMPLED).stdout
        self.assertEqual(first + rest, whole)

    def test_private(self):
        talk("What is 2+2?", f"/save {self.saved}")
        for path in (self.saved, Path(f"{self.saved}.session")):
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        saved = json.loads(self.saved.read_text())
        self.assertEqual(saved["messages"][1], {"role": "assistant", "content": "4"})

    def test_empty_conversation(self):
        result = talk(f"/save {self.saved}", "What is 2+2?", f"/load {self.saved}", "What is 3+3?")
        self.assertEqual((result.returncode, result.stdout), (0, b"4\n6\n"), result.stderr)

    def refused(self, *hints):
        """A file that is not a conversation gets one line, and the conversation goes on as it was."""
        result = talk("What is 2+2?", f"/load {self.saved}", "/regen")
        message = result.stderr.decode()
        self.assertEqual((result.returncode, result.stdout), (1, b"4\n4\n"), message)
        self.assertEqual(len(message.splitlines()), 1, message)
        for hint in (str(self.saved), *hints):
            self.assertIn(hint, message)

    def test_hostile_files(self):
        user = {"role": "user", "content": "a"}
        assistant = {"role": "assistant", "content": "b"}
        system = {"role": "system", "content": "c"}

        def chat(*messages, version=1, attempts=0):
            return {"tern_chat": version, "attempts": attempts, "messages": list(messages)}

        for content, hint in (
            ({}, "not a conversation"),
            ([], "not a conversation"),
            (chat(version=2), "version 2"),
            (chat(version=2**62), "version"),
            (chat(attempts=-1), "attempts"),
            (chat(attempts=2**62), "attempts"),
            (chat(attempts=1.5), "attempts"),
            ({"tern_chat": 1, "attempts": 0}, "no list"),
            ({"tern_chat": 1, "attempts": 0, "messages": {}}, "no list"),
            (chat(3), "message 0"),
            (chat({"role": "user"}), "message 0"),
            (chat({"content": "x"}), "message 0"),
            (chat({"role": "user", "content": 3}), "message 0"),
            (chat({"role": "tool", "content": ""}), "'tool'"),
            (chat(assistant), "message 0"),
            (chat(user, user), "message 1"),
            (chat(user, assistant, system), "message 2"),
            (chat(user, assistant, assistant), "message 2"),
            (chat(user), "no answer"),
            (chat(user, {"role": "assistant", "content": "\0"}), str(self.saved)),
        ):
            with self.subTest(content=content):
                self.saved.write_text(json.dumps(content))
                self.refused(hint)
        for content in (b"", b"\xff\xfe", b"[" * 100000, b'{"tern_chat": 1, "tern_chat": 1}', b"\0"):
            with self.subTest(content=content[:20]):
                self.saved.write_bytes(content)
                self.refused()

    def test_hostile_session_files(self):
        """A bad session costs time, nothing else."""
        talk(*self.LINES, f"/save {self.saved}", options=SAMPLED)
        session = Path(f"{self.saved}.session")
        whole = talk(f"/load {self.saved}", "Tell me more", options=SAMPLED)
        good = session.read_bytes()
        for content in (b"", good[:100], good[:-1], b"x" + good[1:], good + b"x",
                        good[:-9] + bytes([good[-9] ^ 1]) + good[-8:]):
            with self.subTest(size=len(content)):
                session.write_bytes(content)
                result = talk(f"/load {self.saved}", "Tell me more", options=SAMPLED)
                self.assertEqual((result.returncode, result.stdout), (0, whole.stdout), result.stderr)

    def test_full_disk(self):
        result = talk("What is 2+2?", "/save /dev/full", "What is 3+3?")
        self.assertEqual((result.returncode, result.stdout), (1, b"4\n6\n"))
        self.assertIn(b"/dev/full", result.stderr)

if __name__ == "__main__":
    common.main()
