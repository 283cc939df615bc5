#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py --build FOLDER [NAME...]: tests of the server with packages of Debian that are not installed; see README.md.

A package is fetched by apt, as its sources are signed, and unpacked into the user's cache. Nothing is installed, and
apt's lists of the system stay as they are."""

import argparse
import ctypes
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tern" / "debian"
NEWER = "trixie"  # Debian 13, which has libmicrohttpd 1.0
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
LIBRARY = "libmicrohttpd.so.12"
SERVED = "^(serve|e2e_serve|e2e_remote|e2e_operating)"  # tests in which a server runs, or its parts


def mirror_here():
    """Where the system's own sources have Debian from."""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Label: Debian"]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    if not found:
        sys.exit("run.py: apt has no lists of Debian: apt-get update, or --mirror")
    return found[0]


def sources(suite, mirror):
    """The environment of an apt that knows this suite alone, with lists of its own."""
    home = PLACE / "apt" / suite
    for name in ("lists/partial", "archives/partial", "parts"):
        (home / name).mkdir(parents=True, exist_ok=True)
    machine = subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True, text=True).stdout.strip()
    (home / "sources.list").write_text(f"deb [arch={machine} signed-by={KEYRING}] {mirror} {suite} main\n")
    config = home / "apt.conf"
    config.write_text("".join(f'{name} "{value}";\n' for name, value in {
        "Dir::State::lists": home / "lists", "Dir::Cache": home, "Dir::Etc::sourcelist": home / "sources.list",
        "Dir::Etc::sourceparts": home / "parts", "Dir::Etc::preferencesparts": home / "parts", "Acquire::Languages": "none", "APT::Sandbox::User": "root"}.items()))
    environment = os.environ | {"APT_CONFIG": str(config)}
    subprocess.run(["apt-get", "update", "-qq"], env=environment, check=True)
    return environment


def unpacked(package, suite=None, mirror=None):
    """The folder with a package's files: of the system's sources, or of a suite."""
    folder = PLACE / f"{package}-{suite or 'here'}"
    if not (folder / "files").exists():
        folder.mkdir(parents=True, exist_ok=True)
        environment = sources(suite, mirror or mirror_here()) if suite else os.environ
        subprocess.run(["apt-get", "download", "-qq", package], cwd=folder, env=environment, check=True)
        [file] = folder.glob("*.deb")
        subprocess.run(["dpkg-deb", "-x", file, folder / "part"], check=True)
        file.unlink()
        (folder / "part").rename(folder / "files")
    return folder / "files"


def with_first(name, folder):
    """An environment in which a folder comes first in a list of folders."""
    before = os.environ.get(name)
    return os.environ | {name: f"{folder}:{before}" if before else str(folder)}


def promtool(o):
    """What promtool says of /metrics, and of the configuration and alarms of docs/operating.md."""
    environment = with_first("PATH", unpacked("prometheus") / "usr" / "bin")
    tests = {"serve_metrics": "Metrics.test_promtool_has_nothing_to_say", "operating": "Recipes.test_prometheus_takes_the_rules"}
    for name, test in tests.items():
        program = ROOT / "tests" / "e2e" / f"test_{name}.py"
        if subprocess.run([sys.executable, program, "--tern", o.build / "tern", test], env=environment).returncode:
            return False  # when it was skipped, too
    return True


def version_of(library):
    """What libmicrohttpd says it is; in a process of its own, which may not have another one."""
    version = ctypes.CDLL(str(library)).MHD_get_version
    version.restype = ctypes.c_char_p
    return version().decode()


def loaded_by(tern, environment):
    """The path of the library that a server loads."""
    with subprocess.Popen([tern, "serve", "--port", "0"], env=environment, stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        maps = Path(f"/proc/{process.pid}/maps").read_text()
        process.terminate()
    return {Path(line.split()[-1]) for line in maps.splitlines() if "/libmicrohttpd.so" in line}


def newer(o):
    """The library of the newer suite, and the environment of programs that load it."""
    [library] = unpacked("libmicrohttpd12t64", NEWER, o.mirror).glob(f"usr/lib/*/{LIBRARY}")
    return library, with_first("LD_LIBRARY_PATH", library.parent)


def serves_with(build, library, environment):
    """Whether a program loads the library, which is a 1.x, and passes all tests of the server with it."""
    version, loaded = version_of(library), loaded_by(build / "tern", environment)
    print(f"libmicrohttpd {version}", flush=True)
    if not version.startswith("1.") or loaded != {library.resolve()}:
        print(f"a server loads {loaded}", file=sys.stderr)
        return False
    ctest = ["ctest", "--test-dir", build, "-R", SERVED, "-E", "long", "--output-on-failure", "-j", str(os.cpu_count())]
    return subprocess.run(ctest, env=environment).returncode == 0


def microhttpd1(o):
    """The tests of the server with libmicrohttpd 1.0 in place of the version that is installed."""
    return serves_with(o.build, *newer(o))


def built(header, library):
    """A build against another header than the system's, which pkg-config finds first."""
    folder = ROOT / "build-microhttpd1"
    described = folder / "described"
    described.mkdir(parents=True, exist_ok=True)
    link = described / "libmicrohttpd.so"
    link.unlink(missing_ok=True)
    link.symlink_to(library.resolve())
    (described / "libmicrohttpd.pc").write_text(
        f"Name: libmicrohttpd\nDescription: of {NEWER}\nVersion: {version_of(library)}\nLibs: -L{described} -lmicrohttpd\nCflags: -I{header.parent}\n")
    configure = ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DTERN_CUDA=OFF"]
    subprocess.run(configure, env=with_first("PKG_CONFIG_PATH", described), check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", folder, "-j", str(os.cpu_count())], check=True, stdout=subprocess.DEVNULL)
    commands = (folder / "build.ninja").read_text()
    if f"-I{header.parent}" not in commands and f"-isystem {header.parent}" not in commands:
        sys.exit(f"run.py: {header} is not what was built against")
    return folder


def microhttpd1_built(o):
    """The same by a program that was built against 1.0; with the library that is installed it starts, too."""
    library, environment = newer(o)
    [header] = unpacked("libmicrohttpd-dev", NEWER, o.mirror).glob("usr/include/microhttpd.h")
    build = built(header, library)
    installed = loaded_by(build / "tern", os.environ)
    if not installed or library.resolve() in installed:
        print(f"with the library that is installed a server loads {installed}", file=sys.stderr)
        return False
    return serves_with(build, library, environment)


CHECKS = {"promtool": promtool, "microhttpd1": microhttpd1, "microhttpd1_built": microhttpd1_built}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="what make test-build has built")
    parser.add_argument("--mirror", help="of Debian, for what is newer than here (the one of the system's sources)")
    parser.add_argument("names", nargs="*", choices=[*CHECKS, []], metavar="NAME")
    o = parser.parse_args()
    o.build = o.build.resolve()
    failed = [name for name in o.names or CHECKS if not CHECKS[name](o)]
    print(f"failed: {', '.join(failed)}" if failed else "all passed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
