# SPDX-License-Identifier: Apache-2.0
"""The program on a terminal: a pseudo-terminal that the test types into and reads from."""

import fcntl
import os
import pty
import re
import signal
import subprocess
import termios

import common
from common import suite


class Terminal:
    """Everything that the program writes, to either output, is in `text`."""

    def __init__(self, *arguments, env=None):
        self.master, slave = pty.openpty()
        self.text = ""
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

    def type(self, text):
        os.write(self.master, text.encode())

    def _read(self):
        """Reads the next bytes; returns False at the end."""
        try:
            data = os.read(self.master, 65536)
        except OSError:  # on Linux: nobody holds the other side any more
            return False
        self.text += data.decode(errors="replace")
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
