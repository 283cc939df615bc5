#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries Debian packages of tern: `make test-deb`.

    run.py --tern PROGRAM DEB...

lintian, where it is installed, finds nothing in them. As root they are installed by dpkg over a
copy of this system that lasts as long as the test (an overlay), so the system stays as it is: there the program must
give the answer and the digest that PROGRAM, built from the tree, gives, an example is compiled and run, and after
their removal no file is left.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODEL = "models/tern-small.gguf"
LOGITS = f"logits -m {MODEL} --tokens 1,17,42,99 --all --sha256"
QUESTION = "run -p 'Q: What is 17+25? A:' -n 8"
MOUNT = """set -e
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work" "$1/root" "$1/tree"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount -t proc proc "$1/root/proc"
mount --bind /dev "$1/root/dev"
exec chroot "$1/root" sh -c "$2"
"""
INSIDE = """set -e
cd {root}
export DEBIAN_FRONTEND=noninteractive
mkdir /run/tern-debs
find /usr /etc /lib/systemd -name '*tern*' | sort > /run/tern-debs/before
dpkg --install {debs} > /run/tern-debs/log 2>&1 || {{ cat /run/tern-debs/log; exit 1; }}
echo "answer: $(/usr/bin/tern {question})"
echo "digest: $(/usr/bin/tern {logits})"
cc examples/gemv.c $(env -u PKG_CONFIG_PATH pkg-config --cflags --libs tern-kernels) -o /run/tern-debs/gemv
echo "example: $(/run/tern-debs/gemv)"
test -e /usr/share/man/man1/tern.1.gz
if command -v systemd-analyze > /dev/null; then
    systemd-analyze verify tern.service 2>&1 | grep -i tern && exit 1
fi
dpkg --purge tern libtern-dev {libraries} > /run/tern-debs/log 2>&1 || {{ cat /run/tern-debs/log; exit 1; }}
find /usr /etc /lib/systemd -name '*tern*' | sort | diff /run/tern-debs/before -
"""


def said(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        sys.exit(f"tests/debs: {' '.join(map(str, command))[:200]}: {done.stdout}{done.stderr}")
    return done.stdout


def field(deb, name):
    return said("dpkg-deb", "--field", deb, name).strip()


def lint(debs):
    if not shutil.which("lintian"):
        print("lintian is not installed: not asked")
        return
    done = subprocess.run(["lintian", "--allow-root", *debs], capture_output=True, text=True, check=False)
    found = re.findall(r"^[EW]: ", done.stdout, re.M)
    if found or done.returncode:
        sys.exit(f"lintian: {done.stdout}{done.stderr}")
    print(f"lintian: nothing in {len(debs)} packages")


def install(debs, tern):
    """Installs them over a copy of this system, and takes them away again."""
    names = [field(deb, "Package") for deb in debs]
    libraries = next(name for name in names if re.fullmatch(r"libtern[\d.]+", name))
    inside = INSIDE.format(root=ROOT, debs=" ".join(map(str, debs)), question=QUESTION, logits=LOGITS, libraries=libraries)
    with tempfile.TemporaryDirectory(prefix="tern-debs-") as folder:
        text = said("unshare", "--mount", "sh", "-c", MOUNT, "sh", folder, inside)
    digest, answer = (said("sh", "-c", f"{tern} {words}").rstrip("\n") for words in (LOGITS, QUESTION))
    for wanted in (f"digest: {digest}\n", f"answer: {answer}\n", "example: tern_gemv_i2_s_"):
        if wanted not in text:
            sys.exit(f"tests/debs: no '{wanted}' in:\n{text}")
    print(f"installed and removed: {' '.join(names)}: {digest[:16]}...")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tern", type=Path, required=True)
    parser.add_argument("debs", type=lambda name: Path(name).resolve(), nargs="+")
    args = parser.parse_args()
    for deb in args.debs:
        print(f"{deb.name}: {deb.stat().st_size} bytes, needs {field(deb, 'Depends')}")
    lint(args.debs)
    if os.geteuid():
        print("not root: they are not installed")
        return 0
    install(args.debs, args.tern.resolve())
    return 0


if __name__ == "__main__":
    sys.exit(main())
