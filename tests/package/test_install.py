# SPDX-License-Identifier: Apache-2.0
"""Installs tern into a folder, moves that folder, and builds the examples against it as outsiders do.

As C11 and as C++17, with the static and with the shared libraries, through find_package and through
pkg-config. All of them are run, examples/generate.c and examples/together.c with the small model.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
GEMV = r"^tern_gemv_i2_s_\w+, tern \d+\.\d+\.\d+\nmean squared error [\d.]+e-0[5-9] of"
OWN_FORWARD = r"^(cab){13}c$"
EXAMPLES = {"gemv": "tern-kernels", "generate": "tern", "harness": "tern", "own_forward": "tern",
            "together": "tern"}  # fmt: skip
# Two answers have 24 tokens each, and each token is picked in a pass with one of the other answer.
TOGETHER = r"^Once upon a time.*\nlength [0-9a-f]{64}\nThe sun is.*\nlength [0-9a-f]{64}\n24 passes for 5\d tokens$"
# A prompt of five tokens comes twice: it is shorter than a page, so nothing is found again.
HARNESS = (r'^\{"text":".+","end":"length","digest":"[0-9a-f]{64}","answers":2,"prompt_tokens":10,'
           r'"generated_tokens":16,"prefix_hits":0,"prefix_misses":10,"first_token_ms":[\d.]+,'
           r'"p50_ms":[\d.]+,"p95_ms":[\d.]+,"tokens_per_second":[\d.]+,"peak_rss_mib":[\d.]+\}$')
GENERATE = r"\n\d+ tokens after 5$"


def run(command: list, env: dict[str, str] | None = None) -> str:
    """Output of a command; a failure shows all that it printed."""
    env = {**os.environ, **(env or {})}
    done = subprocess.run(list(map(str, command)), env=env, text=True, capture_output=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


class Package:
    """An installed tern that was moved away from the place where it was installed."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        first = folder / "first"
        run([args.cmake, "--install", args.build, "--prefix", first])
        self.prefix = first.rename(folder / "moved")
        self.args, self.folder = args, folder
        self.libdir = next(self.prefix.rglob("libtern-kernels.a")).parent
        for text in [*self.prefix.rglob("*.pc"), *self.prefix.rglob("*.cmake")]:
            if str(folder) in text.read_text(encoding="utf-8"):
                raise SystemExit(f"{text.name} names the folder that it was installed to")

    def check(self, program: Path, kind: str) -> None:
        """The example runs, prints the right text, and loads the shared library or does not."""
        env = {"LD_LIBRARY_PATH": str(self.libdir)} if kind == "shared" else {}
        small = self.args.source / "models" / "tern-small.gguf"
        library, pattern, operands = {
            "gemv": ("libtern-kernels", GEMV, []),
            "generate": ("libtern", GENERATE, [small, "Once upon a time"]),
            "harness": ("libtern", HARNESS, [small, "Once upon a time", "8"]),
            "own_forward": ("libtern", OWN_FORWARD, ["abc", "b"]),
            "together": ("libtern", TOGETHER, [small, "Once upon a time", "The sun is"]),
        }[program.name]
        text = run([program, *operands], env)
        if not re.search(pattern, text.rstrip()):
            raise SystemExit(f"{program}: unexpected output: {text}")
        needed = re.findall(r"NEEDED.*\[(.*)\]", run(["readelf", "--dynamic", program]))
        if any(name.startswith(f"{library}.so.") for name in needed) != (kind == "shared"):
            raise SystemExit(f"{program}: {kind}, but needs {needed}")
        print(f"ok: {program.parent.name}/{program.name}: {text.splitlines()[0]}")

    def with_cmake(self, language: str, kind: str) -> Path:
        build = self.folder / f"cmake-{language}-{kind}"
        flags = " ".join(WARNINGS)
        run([self.args.cmake, "-S", self.args.source / "examples", "-B", build,
             f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DTERN_KIND={kind}",
             f"-DEXAMPLE_LANGUAGE={language}", f"-DCMAKE_C_COMPILER={self.args.cc}",
             f"-DCMAKE_CXX_COMPILER={self.args.cxx}", f"-DCMAKE_{language}_FLAGS={flags}"])  # fmt: skip
        run([self.args.cmake, "--build", build])
        return build

    def with_pkg_config(self, source: Path, package: str, language: str, kind: str) -> Path:
        env = {"PKG_CONFIG_PATH": str(self.libdir / "pkgconfig")}
        options = ["--static"] if kind == "static" else []
        flags = run(["pkg-config", *options, "--cflags", "--libs", package], env).split()
        if kind == "static":  # the linker prefers the shared library where both are
            flags = [f"-l:lib{package}.a" if f == f"-l{package}" else f for f in flags]
        program = self.folder / f"pkg-config-{language}-{kind}" / source.stem
        program.parent.mkdir(exist_ok=True)
        compiler = [self.args.cc, "-std=c11"] if language == "C" else [
            self.args.cxx, "-std=c++17", "-x", "c++"]  # fmt: skip
        run([*compiler, *WARNINGS, source, "-x", "none", *flags, "-o", program])
        return program


def finds_cuda_module(package: Package) -> None:
    """Where the CUDA module was built, the moved program finds it; this needs no device."""
    program = package.prefix / "bin" / "tern"
    if not program.exists():
        return
    env = {"TERN_CUDA_MODULE": ""}
    last = run([program, "kernels"], env).splitlines()[-1]
    if not last.startswith("cuda: "):
        raise SystemExit(f"tern kernels does not say which device there is: {last}")
    if ("not installed" in last) == (package.libdir / "libtern-cuda.so").exists():
        raise SystemExit(f"{package.libdir}: {last}")
    print(f"ok: {last}")


def fetches_models(package: Package) -> None:
    """The files that the program's hints name are installed beside it."""
    program = package.prefix / "bin" / "tern"
    if program.exists() and "smollm2" not in run([program.with_name("tern-get-model"), "--list"]):
        raise SystemExit(f"{program.parent}: tern-get-model does not list smollm2")
    if program.exists() and '"generated_tokens":2' not in run([program.with_name("inference-engine"), "-p", "abc", "-n", "2"]):
        raise SystemExit(f"{program.parent}: inference-engine does not answer")


def splits(package: Package) -> None:
    """Each installed file has one component, so it is in one of Debian's packages; programs load without headers."""
    whole = {str(path.relative_to(package.prefix)) for path in package.prefix.rglob("*") if not path.is_dir()}
    parts = {}
    for name in ("program", "libraries", "development"):
        prefix = package.folder / name
        run([package.args.cmake, "--install", package.args.build, "--prefix", prefix, "--component", name])
        parts[name] = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir()}
    several = sorted(name for name in whole if sum(name in part for part in parts.values()) != 1)
    if several:
        raise SystemExit(f"in no component, or in several: {several}")
    wrong = [name for name in parts["libraries"] if not re.search(r"\.so\.\d|^share/(doc|lintian)/", name)]
    wrong += [name for name in parts["development"] if re.search(r"(^|/)bin/|\.so\.\d", name)]
    if wrong:
        raise SystemExit(f"in a component of others: {wrong}")
    print(f"ok: {', '.join(f'{name} {len(part)}' for name, part in parts.items())} files")


def refuses(package: Package, kind: str) -> None:
    """find_package names the component that is missing."""
    command = [package.args.cmake, "-S", package.args.source / "examples",
               "-B", package.folder / "refused", f"-DCMAKE_PREFIX_PATH={package.prefix}",
               f"-DTERN_KIND={kind}"]  # fmt: skip
    done = subprocess.run(list(map(str, command)), text=True, capture_output=True)
    text = re.sub(r"\s+", " ", done.stderr)
    if done.returncode == 0 or f"static or shared, not '{kind}'" not in text:
        raise SystemExit(f"find_package accepts {kind}: {done.stderr}")


SYSTEM = {"c", "m", "dl", "pthread", "atomic", "gcc_s"}
NEEDED = {"libtern-kernels": {"cpuinfo"}, "libtern": {"cpuinfo", "pcre2-8", "utf8proc", "hwloc"}}


def needs_no_more(package: Package) -> None:
    """The shared libraries load the libraries that docs/dependencies.md names for them, and nothing else."""
    for name, allowed in NEEDED.items():
        text = run(["readelf", "--dynamic", package.libdir / f"{name}.so"])
        needed = set(re.findall(r"NEEDED.*\[lib([\w.+-]+?)\.so[\d.]*\]", text))
        if needed - SYSTEM - allowed or not needed:
            raise SystemExit(f"{name}.so needs {sorted(needed)}, more than {sorted(allowed)}")
        print(f"ok: {name}.so needs {' '.join(sorted(needed - SYSTEM))}")


def kernels_stand_alone(package: Package) -> None:
    """The whole static libtern-kernels links with the libraries that its pkg-config file names, without libtern."""
    env = {"PKG_CONFIG_PATH": str(package.libdir / "pkgconfig")}
    flags = run(["pkg-config", "--static", "--cflags", "--libs", "tern-kernels"], env).split()
    whole = ["-Wl,--whole-archive", "-l:libtern-kernels.a", "-Wl,--no-whole-archive"]
    flags = [part for flag in flags for part in (whole if flag == "-ltern-kernels" else [flag])]
    source = package.args.source / "examples" / "gemv.c"
    run([package.args.cc, "-std=c11", source, *flags, "-o", package.folder / "alone"])
    print("ok: libtern-kernels.a links alone")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--cc", required=True)
    parser.add_argument("--cxx", help="a C++ compiler, if there is one")
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--shared", action="store_true", help="shared libraries were built")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        package = Package(args, Path(folder))
        for kind in ["static"] + ["shared"] * args.shared:
            for language in ["C"] + ["CXX"] * bool(args.cxx):
                build = package.with_cmake(language, kind)
                for name, library in EXAMPLES.items():
                    package.check(build / name, kind)
                    source = args.source / "examples" / f"{name}.c"
                    package.check(package.with_pkg_config(source, library, language, kind), kind)
        kernels_stand_alone(package)
        if args.shared:
            needs_no_more(package)
        finds_cuda_module(package)
        fetches_models(package)
        splits(package)
        refuses(package, "both")
    return 0


if __name__ == "__main__":
    sys.exit(main())
