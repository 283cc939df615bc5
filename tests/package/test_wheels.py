# SPDX-License-Identifier: Apache-2.0
"""scripts/make-wheels: what it refuses, and where it looks for sources. No wheel is built here (tests/wheels does it).

Of tests/wheels/run.py: what it finds wrong with a source archive.
"""

import importlib.machinery
import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "make-wheels"
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))

import suite  # noqa: E402


def load(name, path):
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    spec = importlib.util.spec_from_loader(name, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


wheels = load("make_wheels", SCRIPT)
trials = load("try_wheels", ROOT / "tests" / "wheels" / "run.py")
SAID = {"overall_tag": "manylinux_2_17_x86_64", "external_libs": {}}


class Wheels(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="tern-wheels-"))
        self.addCleanup(subprocess.run, ["rm", "-r", str(self.folder)], check=True)

    def script(self, *args, **env):
        return subprocess.run([sys.executable, SCRIPT, "--work", self.folder / "work", *args], env=os.environ | env,
                              capture_output=True, text=True, timeout=60, check=False)  # fmt: skip

    def test_unknown_platform(self):
        done = self.script("--platform", "windows")
        self.assertEqual(done.returncode, 2)
        for name in wheels.PLATFORMS:
            self.assertIn(name, done.stderr)
        self.assertFalse((self.folder / "work").exists())

    def test_other_bytes(self):
        """A source that is not the one that is pinned stops everything, before any tool is there."""
        fake = self.folder / "bin" / "apt-get"
        fake.parent.mkdir()
        names = " ".join(source.file for source in wheels.SOURCES)
        fake.write_text(f"#!/bin/sh\nfor name in {names}; do echo other > $name; done\n")
        fake.chmod(0o755)
        done = self.script(PATH=f"{fake.parent}:{os.environ['PATH']}")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        source = wheels.SOURCES[0]
        self.assertIn(f"{source.file} is not the file with SHA-256 {source.sha256}", done.stderr)
        self.assertEqual([path.name for path in sorted((self.folder / "work").iterdir())], ["apt", "sources"])
        self.assertFalse([source.file for source in wheels.SOURCES if Path(source.file).exists()])

    def archive(self, names):
        """A source archive with such files, which are empty."""
        path = self.folder / "tern_lm-0.tar.gz"
        with tarfile.open(path, "w:gz") as tar:
            for name in names:
                tar.addfile(tarfile.TarInfo(f"tern_lm-0/{name}"))
        return path

    def test_source_archive(self):
        """What git does not track, or a file that is missing, is found and named."""
        tracked = subprocess.run(["git", "-C", ROOT, "ls-files"], capture_output=True, text=True, check=False)
        if tracked.returncode or not tracked.stdout:
            self.skipTest("not a git checkout")
        names = [*tracked.stdout.splitlines(), "PKG-INFO"]
        trials.check_source(self.archive(names))
        for wrong, named in ((names[:-1], "PKG-INFO"), ([*names, "build/x.o"], "build/x.o"), (names[1:], names[0])):
            with self.assertRaisesRegex(AssertionError, f"1 files are not those of the tree: {re.escape(named)}$"):
                trials.check_source(self.archive(wrong))

    def test_source_is_made(self):
        """The backend's archive gets into its place; its times are those of the commit, so that its bytes are too."""
        python = self.folder / "work" / "tools" / "bin" / "python3"
        python.parent.mkdir(parents=True)
        python.write_text('#!/bin/sh\nmkdir -p "$3"; echo "$PWD $SOURCE_DATE_EPOCH" > "$3"/tern_lm-0.tar.gz\n')
        python.chmod(0o755)
        (python.parents[1] / "requirements.txt").write_bytes(wheels.TOOLS.read_bytes())
        out = self.folder / "out"
        done = self.script("--source", "--out", out, SOURCE_DATE_EPOCH="17")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual((out / "tern_lm-0.tar.gz").read_text(), f"{ROOT} 17\n")
        self.assertRegex(done.stdout, r"/out/tern_lm-0.tar.gz: [0-9]+ bytes\n$")

    def test_apt_without_sources(self):
        """What apt-get says is told."""
        fake = self.folder / "bin" / "apt-get"
        fake.parent.mkdir()
        fake.write_text("#!/bin/sh\necho no such package >&2; exit 100\n")
        fake.chmod(0o755)
        done = self.script(PATH=f"{fake.parent}:{os.environ['PATH']}")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^make-wheels: apt-get .* failed:\nno such package\n$")

    def test_lists_of_sources(self):
        """Both forms of apt's lists become lists of sources; the system's own stay as they are."""
        etc = self.folder / "etc"
        (etc / "sources.list.d").mkdir(parents=True)
        (etc / "sources.list").write_text("# deb of old\ndeb http://a b main\ndeb-src http://c d main\n")
        (etc / "sources.list.d" / "new.sources").write_text("Types: deb\nURIs: http://e\nSuites: f\nComponents: main\n")
        (etc / "sources.list.d" / "off.disabled").write_text("deb http://g h main\n")
        options = wheels.apt_options(self.folder / "work", etc)
        parts = self.folder / "work" / "apt" / "parts"
        self.assertIn(f"Dir::Etc::SourceParts={parts}", options)
        self.assertEqual((parts / "all.list").read_text(), "deb-src http://a b main\n")
        self.assertEqual((parts / "all.sources").read_text(),
                         "Types: deb-src\nURIs: http://e\nSuites: f\nComponents: main\n")  # fmt: skip
        self.assertIn("Types: deb\n", (etc / "sources.list.d" / "new.sources").read_text())

    def test_tags(self):
        """A wheel may need an older system than its tag says, never a newer or another one."""
        tag = "manylinux_2_17_x86_64"
        for found in ("manylinux_2_17_x86_64", "manylinux_2_5_x86_64"):
            self.assertTrue(wheels.fits(found, tag))
        for found in ("manylinux_2_28_x86_64", "manylinux_2_17_aarch64", "musllinux_1_2_x86_64", "linux_x86_64", "any"):
            self.assertFalse(wheels.fits(found, tag), found)

    def test_refused(self):
        platform = wheels.PLATFORMS["manylinux-x86_64"]
        wheels.judge(SAID, platform, wheels.LARGEST)
        for said, size, why in (
            (SAID | {"overall_tag": "manylinux_2_34_x86_64"}, 1, "finds manylinux_2_34_x86_64"),
            (SAID | {"external_libs": {"libcpuinfo.so.0": "/usr/lib/libcpuinfo.so.0"}}, 1, "needs libcpuinfo.so.0"),
            (SAID, wheels.LARGEST + 1, "bytes"),
        ):
            with self.assertRaisesRegex(wheels.Failure, why):
                wheels.judge(said, platform, size)

    def test_refused_for_macos(self):
        platform = wheels.PLATFORMS["macos-arm64"]

        def said(**other):
            file = {"file": "tern/_lib/tern", "processor": "ARM64", "least": [13], "libraries": ["/usr/lib/libSystem.B.dylib"]}
            return [file, file | other]

        wheels.judge_macos(said(), platform, wheels.LARGEST)
        wheels.judge_macos(said(least=[11]), platform, 1)
        for files, size, why in (
            (said(processor="x86_64"), 1, "does not run where macosx_13_0_arm64 says"),
            (said(least=[14]), 1, "does not run where"),
            (said(least=[]), 1, "does not run where"),
            (said(libraries=["/usr/lib/libSystem.B.dylib", "/opt/x/libpcre2-8.0.dylib"]), 1, "needs /opt/x/libpcre2-8.0.dylib"),
            (said()[:1], 1, "a library and a program"),
            (said(), wheels.LARGEST + 1, "bytes"),
        ):
            with self.assertRaisesRegex(wheels.Failure, why):
                wheels.judge_macos(files, platform, size)

    def test_words_of_the_compiler(self):
        """Zig is called for the platform; what kernels for ARM ask of gcc and clang is said in its words."""
        zig, python = self.folder / "zig", self.folder / "python3"
        zig.write_text("#!/bin/sh\nprintf '%s|' \"$@\"\n")
        python.write_text(f"#!/bin/sh\necho {zig}\n")
        for path in (zig, python):
            path.chmod(0o755)
        words = ["-march=armv8.2-a+dotprod", "-march=armv8.2-a+dotprod+i8mm", '-DX="a b"', "-march=native", "-c", "x.c"]
        said = ["-mcpu=generic+dotprod", "-mcpu=generic+dotprod+i8mm", *words[2:]]
        for name, platform in wheels.PLATFORMS.items():
            work = self.folder / name
            wheels.make_toolchain(work, python, platform)
            self.assertEqual(wheels.run(work / "bin" / "cc", *words),
                             "|".join(["cc", "-g0", "-target", platform.target, *said, ""]))  # fmt: skip

    def test_every_platform_has_its_tag(self):
        for name, platform in wheels.PLATFORMS.items():
            system, _, processor = name.partition("-")
            begins, target = ("macosx", "macos") if system == "macos" else (system, "linux")
            self.assertTrue(platform.tag.startswith(f"{begins}_") and platform.tag.endswith(f"_{processor}"), name)
            self.assertTrue(platform.target.startswith(f"{platform.processor}-{target}"), name)
            self.assertEqual(platform.system, {"linux": "Linux", "macos": "Darwin"}[target], name)


if __name__ == "__main__":
    suite.main(["wheels"])
