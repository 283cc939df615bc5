#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py --build FOLDER: tests of the server with a package of Debian that is not installed; see README.md.

apt fetches it, because its sources are signed, and it is unpacked into the user's cache. Nothing is installed."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tern" / "debian"
TESTS = {"serve_metrics": "Metrics.test_promtool_has_nothing_to_say", "operating": "Recipes.test_prometheus_takes_the_rules"}


def unpacked(package):
    """Returns the folder with the files of a package from the system's sources."""
    folder = PLACE / f"{package}-here"
    if not (folder / "files").exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", "-qq", package], cwd=folder, check=True)
        [file] = folder.glob("*.deb")
        subprocess.run(["dpkg-deb", "-x", file, folder / "part"], check=True)
        file.unlink()
        (folder / "part").rename(folder / "files")
    return folder / "files"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="what make test-build has built")
    tern = parser.parse_args().build.resolve() / "tern"
    programs = unpacked("prometheus") / "usr" / "bin"
    environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"}
    commands = [[sys.executable, ROOT / "tests" / "e2e" / f"test_{name}.py", "--tern", tern, test] for name, test in TESTS.items()]
    failed = [command for command in commands if subprocess.run(command, env=environment).returncode]  # when it was skipped, too
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
