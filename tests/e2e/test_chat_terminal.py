# SPDX-License-Identifier: Apache-2.0
"""Tests of tern chat on a terminal: editing, pasting, windows that change, words at the edge, signals."""

import ctypes
import os
import re
import signal
import stat
import unittest
from pathlib import Path

import common
import gguf_edit
from common import suite, tern_json
from terminal import Terminal
from test_chat import ANSWERS, Chat, talk


class OnATerminal(Chat):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with Terminal("chat", env={"TERN_NO_HISTORY": "1"}) as chat:
            chat.expect(r"> $")
            if "libedit" not in Path(f"/proc/{chat.process.pid}/maps").read_text():
                raise unittest.SkipTest("this build has no line editing (libedit)")

    def test_questions_and_end(self):
        with self.terminal() as chat:
            greeting = chat.prompt()
            self.assertRegex(greeting, r"2\.6 million parameters: a tiny .*, 512 positions\)")
            self.assertRegex(greeting, r"greedy \(generation_config\.json\), seed 42; /settings")
            self.assertIn("/help lists commands", greeting)
            for question, answer in ANSWERS.items():
                self.assertEqual(chat.ask(question), answer + "\n")
            chat.type("\x04")
            self.assertEqual(chat.end(), 0)
        with self.terminal() as chat:
            chat.prompt()
            chat.type("/exit\r")
            self.assertEqual(chat.end(), 0)

    def test_names_do_not_command_the_terminal(self):
        """Control characters of a model's name are shown as '?'."""
        file = gguf_edit.read(common.small_model())
        file["general.name"] = gguf_edit.string("a\x1b]0;owned\x07\x9b31mb")
        path = Path(self.folder.name) / "named.gguf"
        path.write_bytes(file.to_bytes())
        with self.terminal("-m", path) as chat:
            greeting = chat.prompt()
            self.assertIn("(a?]0;owned??31mb,", greeting)
            self.assertNotIn("\x9b", greeting)

    def test_other_names_of_commands(self):
        with self.terminal() as chat:
            chat.prompt()
            self.assertIn("/exit", chat.ask("/?"))
            self.assertNotIn("/quit", chat.ask("/help"))
            chat.type("/quit\r")
            self.assertEqual(chat.end(), 0)

    def test_editing(self):
        with self.terminal() as chat:
            chat.prompt()
            chat.type("at is 2+9\x01Wh\x05\x7f2?\r")  # to the start, to the end, erase
            chat.expect(r"\r\n")
            self.assertEqual(chat.prompt(), "4\n")
            chat.type("nonsense\x15What is é\x7f17+25?\r")  # the whole line; a character of two bytes
            chat.expect(r"\r\n")
            self.assertEqual(chat.prompt(), "42\n")
            chat.type("\x1b[A\x1b[A\r")  # two lines up
            chat.expect(r"\r\n")
            self.assertEqual(chat.prompt(), "4\n")

    def test_pasted_lines_are_one_question(self):
        """As the lines of a block are; control characters of a pasted text do nothing."""
        joined = tern_json("run", "--chat", "-p", "What is\n2+2?\n", "-n", 20)["text"]
        wide = tern_json("run", "--chat", "-p", "What is\n2+2?", "-n", 20)["text"]
        with self.terminal("-n", 20) as chat:
            chat.prompt()
            chat.paste("What \x03\x1bis\r2+2?\r\n")
            chat.type("\r")
            chat.expect(r"2\+2\?\r\n")
            self.assertEqual(chat.prompt(), wide + "\n")
            self.assertIn("2 messages", chat.ask("/stats"))
            chat.ask("/clear")
            chat.type('"""\r')
            chat.prompt(". ")
            chat.paste("What is\r2+2?\r")
            chat.type("\r")
            chat.prompt(". ")
            chat.type('\r"""\r')
            chat.expect(r'"""\r\n')
            self.assertEqual(chat.prompt(), joined + "\n")
            self.assertEqual(chat.pastes[-2:], ["\x1b[?2004l", "\x1b[?2004h"], "not during an answer")
            chat.type("\x04")
            self.assertEqual(chat.end(), 0)
            self.assertEqual(chat.pastes[-1], "\x1b[?2004l")

    def test_pasted_commands_are_not_run(self):
        with self.terminal() as chat:
            chat.prompt()
            chat.paste("/exit\nWhat is 2+2?")
            chat.type("\r")
            chat.expect(r"2\+2\?\r\n")
            chat.prompt()
            self.assertIn("2 messages", chat.ask("/stats"))

    def screen(self, columns, *options):
        return Terminal("chat", *options, columns=columns, env={"TERN_NO_HISTORY": "1"})

    def test_words_are_kept_whole(self):
        """An answer on a narrow terminal has the words of the same answer elsewhere, none of them broken."""
        options = ("--ignore-eos", "-n", 60, "--seed", 5, "--temp", 1.0)
        words = talk("Once upon a time", options=options).stdout.decode().split()
        for columns in (24, 31):
            with self.screen(columns, *options) as chat:
                chat.prompt()
                chat.type("Once upon a time\r")
                chat.expect(r"\(cut")
                chat.prompt()
                rows = chat.screen.rows()
                rows = rows[rows.index("> Once upon a time") + 1 :]
                rows = rows[: next(i for i, row in enumerate(rows) if row.startswith("(cut"))]
                self.assertEqual(" ".join(rows).split(), words)
                self.assertGreater(len(rows), 5)
                self.assertTrue(all(len(row) <= columns for row in rows))
                for row, following in zip(rows, rows[1:]):
                    room = columns - len(row)
                    self.assertFalse(following and len(following.split()[0]) < room, f"a row ends early: {rows}")
        with self.screen(24, *options) as chat:
            chat.prompt()
            chat.ask("/set wrap off")
            self.assertNotIn("\x1b[K", chat.ask("Once upon a time"))

    def test_window_changes_while_a_line_is_typed(self):
        with self.screen(40) as chat:
            chat.prompt()
            line = "What is the sum of 17 and 25? Say it"  # one row of 40 columns, two of 20
            chat.type(line)
            chat.expect("Say it$")
            for columns, rows in ((20, ["> What is the sum of", " 17 and 25? Say it"]), (60, [f"> {line}"])):
                chat.resize(columns)
                chat.expect(r"Say it$")
                self.assertEqual(chat.screen.rows()[-len(rows) :], rows)
                self.assertEqual(sum(row.startswith("> ") for row in chat.screen.rows()), 1)
            chat.type(" now\x01So\x01")
            suite.until(lambda: chat._read() and chat.screen.rows()[-1] == f"> So{line} now")

    def test_another_thread_hears_of_the_window(self):
        """The system may tell any thread; the one that waits for keys draws the line again."""
        with self.screen(40, "--threads", 2) as chat:
            chat.prompt()
            chat.type("hello")
            chat.expect("hello$")
            pid = chat.process.pid
            suite.until_asleep(pid)
            others = [int(name) for name in os.listdir(f"/proc/{pid}/task") if int(name) != pid]
            self.assertEqual(ctypes.CDLL(None).tgkill(pid, others[0], signal.SIGWINCH), 0)
            chat.expect("hello$")

    def test_window_changes_while_an_answer_is_written(self):
        """The column is that of the new window: words are kept whole in it."""
        model = common.synth("smollm2-135m", self.folder.name)
        with self.screen(60, "-m", model, "--ignore-eos", "-n", 5000) as chat:
            chat.prompt()
            chat.type("hello\r")
            chat.expect(r"\x1b\[K\r\n")
            chat.resize(25)
            for _ in range(4):
                place = int(re.search(r"(\d+)$", chat.expect(r"G\x1b\[K\r\n"))[0])
            self.assertLessEqual(place, 25)
            chat.type("\x03")
            chat.expect(r"\(stopped\)")

    def test_ctrl_d(self):
        """It ends on an empty line, erases within one, and ends a block."""
        with self.terminal() as chat:
            chat.prompt()
            chat.type("What is 2+22?\x02\x02\x04\r")
            chat.expect(r"\r\n")
            self.assertEqual(chat.prompt(), "4\n")
            chat.type('"""\r')
            chat.prompt(". ")
            chat.type("What is 3+3?\r")
            chat.prompt(". ")
            chat.type("\x04")
            self.assertRegex(chat.prompt(), r"\n6\n$")
            chat.type("\x04")
            self.assertEqual(chat.end(), 0)

    def test_history_is_kept_and_private(self):
        with self.terminal() as chat:
            chat.prompt()
            chat.ask("What is 17+25?")
            chat.type("\x04")
            chat.end()
        file = self.state / "tern" / "history"
        self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(file.parent.stat().st_mode), 0o700)
        self.assertEqual(os.listdir(file.parent), ["history"])
        with self.terminal() as chat:
            chat.prompt()
            chat.type("\x1b[A\r")
            chat.expect(r"\r\n")
            self.assertEqual(chat.prompt(), "42\n")
            chat.type("\x04")
            chat.end()

    def test_no_history(self):
        with self.terminal(TERN_NO_HISTORY="1") as chat:
            chat.prompt()
            chat.ask("What is 17+25?")
            chat.type("\x04")
            self.assertEqual(chat.end(), 0)
        self.assertFalse(self.state.exists())

    def test_broken_history(self):
        file = self.state / "tern" / "history"
        file.parent.mkdir(parents=True)
        for content in (b"", b"\0\xff" * 5000, b"_HiStOrY_V2_\n\\999\\x\n", b"_HiStOrY_V2_"):
            file.write_bytes(content)
            with self.terminal() as chat:
                chat.prompt()
                self.assertEqual(chat.ask("What is 2+2?"), "4\n")
                chat.type("\x04")
                self.assertEqual(chat.end(), 0)

    def test_ctrl_c_leaves_a_line(self):
        with self.terminal() as chat:
            chat.prompt()
            chat.type("What is 1\x03")
            chat.expect(r"\^C\r\n")
            chat.prompt()
            chat.type("What is\\\r")
            chat.prompt(". ")
            chat.type("\x03")
            self.assertEqual(chat.prompt(), "^C\n")
            self.assertEqual(chat.ask("What is 2+2?"), "4\n")

    def test_regen_and_remarks(self):
        with self.terminal() as chat:
            chat.prompt()
            chat.ask("What is 2+2?")
            self.assertIn("the same answer: --temp is 0", chat.ask("/regen"))
            self.assertIn("\033[2m", chat.ask("/clear"))
            self.assertIn("/load FILE", chat.ask("/help"))
        with self.terminal(NO_COLOR="1") as chat:
            chat.prompt()
            self.assertNotIn("\033[2m", chat.ask("/clear"))

    def test_context_remark(self):
        with self.terminal("--ctx", 40, "--ignore-eos") as chat:
            chat.prompt()
            self.assertIn("context of 40 positions is full: /trim", chat.ask("What is 2+2?"))

    def test_ctrl_c_stops_an_answer(self):
        """The program goes on, and still knows the conversation."""
        model = common.synth("smollm2-135m", self.folder.name)
        with self.terminal("-m", model, "--ignore-eos", "-n", 5000) as chat:
            chat.prompt()
            chat.type("hello\r")
            chat.wait_for_editing(False)
            chat.expect(r"\n\w")
            chat.type("\x03")
            chat.expect(r"\(stopped\)")
            chat.prompt()
            self.assertIn("2 messages", chat.ask("/stats"))
            chat.type("\x04")
            self.assertEqual(chat.end(), 0)


if __name__ == "__main__":
    common.main()
