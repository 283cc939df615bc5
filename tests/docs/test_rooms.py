# SPDX-License-Identifier: Apache-2.0
"""docs/architecture.md shows the rooms as the sources include them: in its picture and in its table."""

import importlib.machinery
import importlib.util
import math
import os
import re
import unittest
from pathlib import Path
from unittest import mock

from documents import ROOT
import suite

# The program is a client of the library: what it needs is in include/tern/.
PRIVATE = ("runtime", "threads", "dispatch", "kernels", "device", "gen")
MADE = re.compile(r"(build|out$|gen$|\.|__pycache__)")  # folders that are not of the source
ROW = re.compile(r"^\| `([\w/]+)/` \| .+ \| (.+) \|$", re.M)


def load_script():
    """Loads lab/rooms-picture as a module; its name has no ending."""
    loader = importlib.machinery.SourceFileLoader("rooms_picture", str(ROOT / "lab" / "rooms-picture"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def private_includes(name: str, text: str) -> list[str]:
    """"file:line includes header" for each private header that a file of the program includes."""
    return [
        f"{name}:{number} includes {header}"
        for number, line in enumerate(text.splitlines(), 1)
        for header in re.findall(r'^\s*#\s*include\s*"([^"]+)"', line)
        if header.split("/")[0] in PRIVATE
    ]


def includes_outside(name: str, text: str, rooms: set[str]) -> list[str]:
    """"file includes header" for each header of the tree that lies in no room, such as a test's."""
    return [
        f"{name} includes {header}"
        for header in re.findall(r'^\s*#\s*include\s*"([^"]+/[^"]+)"', text, re.M)
        if header.split("/")[0] not in rooms | {"tern", "gen"}
    ]


# base/os/ alone has what is of one system, beyond C11 and POSIX (base/os/os.h).
SYSTEMS = re.compile(
    r"^\s*#\s*(?:if|elif)[^\n]*\b(?:__linux__|__linux|__APPLE__|_WIN32|__GLIBC__|__EMSCRIPTEN__|__wasi__)\b"
    r"|#\s*include\s*<(?:sys/(?:auxv|epoll|eventfd|inotify|prctl|random|syscall|sysctl)\.h|stdio_ext\.h|mach[-/o]*/.*)>"
    r"|\b(?:MADV_\w+|O_TMPFILE|O_PATH|SCHED_IDLE|SOCK_CLOEXEC|SOCK_NONBLOCK|EFD_\w+|POLLRDHUP|cpu_set_t|CPU_SETSIZE"
    r"|_SC_LEVEL\d\w+|SYS_\w+|st_[amc]tim|pthread_barrier_\w+)\b"
    r"|\b(?:accept4|eventfd|getauxval|getrandom|madvise|mempcpy|memfd_create|pipe2|posix_fallocate|prctl|renameat2"
    r"|sched_[gs]etaffinity|pthread_setaffinity_np|syscall|__fpurge)\s*\(",
    re.M,
)


def system_words(name: str, text: str) -> list[str]:
    """"file: word" for each part of one system in the code of a file, comments left out."""
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return [f"{name}: {found.group().strip()}" for found in SYSTEMS.finditer(code)]


def one_by_one(numbers):
    """Adds floats as `sum` did before."""
    total = 0.0
    for number in numbers:
        total += number
    return total


class Tree(unittest.TestCase):
    def test_the_readme_shows_every_folder(self):
        page = (ROOT / "README.md").read_text(encoding="utf-8")
        tree = page.partition("\n## The tree\n```\n")[2].partition("\n```\n")[0]
        shown = sorted(line.split("/")[0] for line in tree.splitlines())
        self.assertEqual(shown, sorted(path.name for path in ROOT.iterdir() if path.is_dir() and not MADE.match(path.name)))

    def test_files_are_text(self):
        """But pictures and the small model: what a compiler leaves behind does not belong into the tree."""
        found = []
        for folder, folders, names in os.walk(ROOT):
            folders[:] = [name for name in folders if not MADE.match(name)]
            paths = [Path(folder, name) for name in names if not name.endswith((".png", ".pyc"))]
            found += [path.relative_to(ROOT).as_posix() for path in paths if path.is_file() and b"\0" in path.read_bytes()]
        self.assertEqual(found, ["models/tern-small.gguf"])


class Rooms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.script = load_script()
        cls.folders = cls.script.read_includes()
        cls.rooms = cls.script.among(cls.folders, cls.script.room_of, lambda folder: True)
        page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
        section = page.partition("\n## Rooms\n")[2].partition("\n## ")[0]
        cls.table = {room: re.findall(r"`([\w/]+)/`", to) for room, to in ROW.findall(section)}

    def test_the_picture_is_that_of_today(self):
        drawn = (ROOT / "docs" / "rooms.svg").read_text(encoding="utf-8")
        same = drawn == self.script.picture()
        self.assertTrue(same, "docs/rooms.svg is out of date: run lab/rooms-picture and look at it")

    def test_every_python_draws_the_same(self):
        """Since Python 3.12 `sum` of floats rounds once, as math.fsum does in every version."""
        plain = self.script.picture()
        with mock.patch.object(self.script, "sum", math.fsum, create=True):
            self.assertEqual(self.script.picture(), plain)
        with mock.patch.object(self.script, "sum", one_by_one, create=True):
            self.assertEqual(self.script.picture(), plain)

    def test_the_table_names_every_room(self):
        self.assertEqual(sorted(self.table), sorted(self.rooms))

    def test_rooms_include_what_the_table_allows(self):
        for room, included in self.rooms.items():
            allowed = set(self.table[room]) | set(self.script.OPEN_TO_ALL)
            self.assertEqual(included - allowed, set(), f"{room}/ includes what the table does not allow")

    def test_imports_point_one_way(self):
        order = list(self.table)
        for room, allowed in self.table.items():
            above = [to for to in allowed if order.index(to) <= order.index(room)]
            self.assertEqual(above, [], f"{room}/ may include a room that does not stand below it")

    def test_the_program_includes_public_headers_only(self):
        found = []
        for room in ("tools", "receipts"):
            for path in sorted((ROOT / room).rglob("*.[ch]")):
                name = path.relative_to(ROOT).as_posix()
                found += private_includes(name, path.read_text(encoding="utf-8"))
        self.assertEqual(found, [], "the program includes private headers: make what it needs public")

    def test_rooms_include_rooms_only(self):
        """Neither the tests nor lab/ and codegen/ hold a part of the program."""
        rooms = {room.split("/")[0] for room in self.table}
        found = []
        for room in self.table:
            for path in sorted((ROOT / room).rglob("*")):
                if self.script.SOURCES.search(path.name):
                    name = path.relative_to(ROOT).as_posix()
                    found += includes_outside(name, path.read_text(encoding="utf-8"), rooms)
        self.assertEqual(found, [], "a room includes what is not a room")

    def test_systems_stay_in_one_room(self):
        found = []
        for room in self.table:
            for path in sorted((ROOT / room).rglob("*")):
                name = path.relative_to(ROOT).as_posix()
                if self.script.SOURCES.search(path.name) and not name.startswith("base/os/"):
                    found += system_words(name, path.read_text(encoding="utf-8"))
        self.assertEqual(found, [], "base/os/os.h is the place for it")

    def test_every_system_has_all(self):
        header = (ROOT / "base" / "os" / "os.h").read_text(encoding="utf-8")
        wanted = sorted(re.findall(r"^[\w ]+[ *](tern_os_\w+)\(", header, re.M))
        self.assertGreater(len(wanted), 30)
        for path in sorted((ROOT / "base" / "os").glob("*.c")):
            defined = re.findall(r"^(?!static)[\w ]+[ *](tern_os_\w+)\(.*\{\}?$", path.read_text(encoding="utf-8"), re.M)
            self.assertEqual(sorted(set(defined)), wanted, path.name)

    def test_a_part_of_a_system_is_named(self):
        text = "/* madvise(a) */\n#  ifdef __APPLE__\n#if defined(__x86_64__) && defined(__linux__)\nint i = pipe2(p, 0);\n"
        words = ["#  ifdef __APPLE__", "#if defined(__x86_64__) && defined(__linux__", "pipe2("]
        self.assertEqual(system_words("x.c", text), [f"x.c: {word}" for word in words])
        for line in ("#include <sys/eventfd.h>", "#include <mach/mach.h>", "x = st.st_mtim;", "syscall (SYS_x)"):
            self.assertNotEqual(system_words("x.c", line), [], line)

    def test_a_header_outside_is_named(self):
        text = '#include "kernels/half.h"\n# include "tests/cuda/emulator.h"\n#include <stdio.h>\n#include "gen/list.h"\n'
        self.assertEqual(includes_outside("kernels/x.cuh", text, {"kernels"}), ["kernels/x.cuh includes tests/cuda/emulator.h"])

    def test_a_private_header_is_named(self):
        text = '#include "tern/tern.h"\n\n#include "dispatch/cpu.h"\n'
        self.assertEqual(private_includes("tools/x.c", text), ["tools/x.c:3 includes dispatch/cpu.h"])

    def test_no_cycles(self):
        """Folders that include each other, directly or by way of others, are one merged node."""
        folders = self.script.read_includes(self.script.whole_folder_of)
        self.assertIn("base/json_tree", folders)
        cycles = [name for name in self.script.merge_cycles(folders) if " + " in name]
        self.assertEqual(cycles, [], "folders include each other")

    def test_a_cycle_is_named(self):
        graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
        self.assertIn("a + b + c", self.script.merge_cycles(graph))


if __name__ == "__main__":
    suite.main()
