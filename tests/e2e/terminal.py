# SPDX-License-Identifier: Apache-2.0
"""The program on a terminal: a pseudo-terminal that the test types into and reads from."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios

import common
from common import suite


PASTES = re.compile(r"\x1b\[\?2004[hl]")  # whether the terminal marks what is pasted


class Screen:
    """What a terminal shows: letters, line ends and the sequences that chats use. A line that is longer than the
    window goes on in the next row, and is broken anew when the window changes."""

    def __init__(self, columns):
        self.columns = columns
        self.lines = [[]]  # as written, without regard to the window
        self.line = self.at = 0

    def resize(self, columns):
        self.columns = columns

    def rows(self):
        """The rows of the window, without spaces at their ends."""
        rows = []
        for line in self.lines:
            pieces = ["".join(line[i : i + self.columns]).rstrip() for i in range(0, max(len(line), 1), self.columns)]
            rows += pieces
        return rows

    def _put(self, c):
        line = self.lines[self.line]
        line.extend(" " * (self.at + 1 - len(line)))
        line[self.at] = c
        self.at += 1

    def _up(self, n):
        for _ in range(n):
            if self.at >= self.columns:
                self.at -= self.columns
            elif self.line > 0:
                self.line -= 1
                self.at += (max(len(self.lines[self.line]), 1) - 1) // self.columns * self.columns

    def _down(self):
        rest = (max(len(self.lines[self.line]), 1) - 1) // self.columns - self.at // self.columns
        if rest > 0:
            self.at += self.columns
            return
        self.at %= self.columns
        self.line += 1
        if self.line == len(self.lines):
            self.lines.append([])

    def _erase(self, mode):
        del self.lines[self.line][self.at :]
        if mode == "J":
            del self.lines[self.line + 1 :]

    def _control(self, number, final):
        n = int(number or 1)
        begin = self.at // self.columns * self.columns
        if self.at == begin and self.at == len(self.lines[self.line]) and self.at > 0:
            begin -= self.columns  # a full row: the cursor waits at its end
        if final == "G":
            self.at = begin + n - 1
        elif final == "C":
            self.at += n
        elif final == "D":
            self.at = max(begin, self.at - n)
        elif final == "A":
            self._up(n)
        elif final == "P":
            del self.lines[self.line][self.at : self.at + n]
        elif final == "@":
            self.lines[self.line][self.at : self.at] = " " * n
        elif final in "JK":
            self._erase(final)
        elif final not in "mhl":
            raise AssertionError(f"a sequence that Screen does not know: {number}{final}")

    def write(self, text):
        for number, final, c in re.findall(r"\x1b\[\??(\d*)([A-Za-z@])|([^\x1b])", text):
            if final:
                self._control(number, final)
            elif c == "\r":
                full = self.at == len(self.lines[self.line]) and self.at > 0 and self.at % self.columns == 0
                self.at = (self.at - full) // self.columns * self.columns
            elif c == "\n":
                self._down()
            elif c == "\b":
                self.at -= 1
            elif c != "\a":
                self._put(c)


class Terminal:
    """Everything that the program writes, to either output, is in `text`, without the marks about pasting. `screen`
    shows all of it where a number of columns is given."""

    def __init__(self, *arguments, env=None, columns=None):
        self.master, slave = pty.openpty()
        self.text = ""
        self.pastes = []  # the marks
        self.screen = Screen(columns) if columns else None
        if columns:
            self._set_size(columns)
        self.process = subprocess.Popen(
            common.command(*arguments),
            env=common.clean_environment(TERM="xterm", **(env or {})),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=self._own_terminal,
        )
        os.close(slave)

    @staticmethod
    def _own_terminal():
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        os.close(self.master)

    def _set_size(self, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))

    def resize(self, columns):
        """Gives the window another width; the system tells the program."""
        self.screen.resize(columns)
        self._set_size(columns)

    def paste(self, text):
        """Types as a terminal does when something is pasted: marked if the program has asked for it."""
        suite.until(lambda: self.pastes and self.pastes[-1].endswith("h"))
        self.type(f"\x1b[200~{text}\x1b[201~")

    def type(self, text):
        os.write(self.master, text.encode())

    def _read(self):
        """Reads the next bytes; returns False at the end."""
        try:
            data = os.read(self.master, 65536)
        except OSError:  # on Linux: nobody holds the other side any more
            return False
        new = data.decode(errors="replace")
        if self.screen:
            self.screen.write(new)
        self.text += new
        self.pastes += PASTES.findall(self.text)
        self.text = PASTES.sub("", self.text)
        return bool(data)

    def expect(self, pattern):
        """Waits until the pattern is in the text from here on; takes the text up to its end."""
        while True:
            found = re.search(pattern, self.text)
            if found:
                before = self.text[: found.start()]
                self.text = self.text[found.end() :]
                return before
            if not self._read():
                raise AssertionError(f"no {pattern!r} in {self.text!r}")

    def wait_for_editing(self, editing=True):
        """Waits until the terminal gives the program each key (or, when not editing, whole lines)."""
        suite.until(lambda: bool(termios.tcgetattr(self.master)[3] & termios.ICANON) != editing)

    def prompt(self, mark="> "):
        """Waits until a line can be typed; returns the text before the prompt."""
        before = self.expect(re.escape(mark) + "$")
        self.wait_for_editing()
        return before.replace("\r\n", "\n")

    def ask(self, line):
        """Types a line at the prompt; returns the text until the next prompt, without the echo."""
        self.type(line + "\r")
        self.expect(r"\r\n")
        return self.prompt()

    def end(self):
        """Waits for the program's end; returns its exit status."""
        while self._read():
            pass
        return self.process.wait()
