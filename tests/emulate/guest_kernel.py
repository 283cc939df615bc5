# SPDX-License-Identifier: Apache-2.0
"""bochs-run prepares these once and keeps them: the guest's kernel, and the cache that it lies in."""

import hashlib
import json
import lzma
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

KERNEL_META_PACKAGE = "linux-image-cloud-amd64"
EXIT_SETUP = 2  # something that must be installed or given is missing


class Failure(Exception):
    """A message for the user, with the exit status to leave with."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


def run_tool(command, what, status=EXIT_SETUP, **options):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **options)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise Failure(status, f"{what} failed: {' '.join(command)}\n{said}")
    return done.stdout


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = os.path.join(base, "tern", "emulate")
    os.makedirs(folder, exist_ok=True)
    return folder


def cached(name, build):
    """The folder NAME of the cache; BUILD(folder) fills it when it is absent.

    It is filled under another name and then renamed, so that a run beside
    this one, or one that was interrupted, never leaves half of it."""
    final = os.path.join(cache_folder(), name)
    if os.path.isdir(final):
        return final
    draft = tempfile.mkdtemp(prefix=".draft-", dir=cache_folder())
    try:
        build(draft)
        try:
            os.rename(draft, final)
        except OSError:
            if not os.path.isdir(final):  # else another run was faster
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return final


def digest(*contents):
    whole = hashlib.sha256()
    for content in contents:
        whole.update(struct.pack("<Q", len(content)) + content)
    return whole.hexdigest()[:16]


def round_up(value, step):
    return -(-value // step) * step


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)


# ---------------------------------------------------------------- kernel ----

def download_kernel(folder):
    """Puts Debian's smallest kernel, vmlinuz, into FOLDER."""
    for tool in ("apt-get", "apt-cache", "dpkg-deb"):
        if not shutil.which(tool):
            raise Failure(EXIT_SETUP, f"{tool} is missing, so no kernel can be fetched; "
                          "give one: TERN_EMULATE_KERNEL=/path/to/vmlinuz")
    found = run_tool(["apt-cache", "depends", KERNEL_META_PACKAGE],
                     "looking up the kernel package (try apt-get update)").decode()
    names = [word for word in found.split() if word.startswith("linux-image-")
             and word != KERNEL_META_PACKAGE]
    if not names:
        raise Failure(EXIT_SETUP, f"no package {KERNEL_META_PACKAGE}: try apt-get update, or "
                      "give a kernel: TERN_EMULATE_KERNEL=/path/to/vmlinuz")
    print(f"bochs-run: fetching {names[0]} once", file=sys.stderr)
    run_tool(["apt-get", "download", names[0]],
             "fetching the kernel package (try apt-get update)", cwd=folder)
    package = next(name for name in os.listdir(folder) if name.endswith(".deb"))
    run_tool(["dpkg-deb", "-x", package, "unpacked"], "unpacking the kernel package", cwd=folder)
    boot = os.path.join(folder, "unpacked", "boot")
    image = next(name for name in os.listdir(boot) if name.startswith("vmlinuz"))
    os.rename(os.path.join(boot, image), os.path.join(folder, "vmlinuz"))
    os.unlink(os.path.join(folder, package))
    shutil.rmtree(os.path.join(folder, "unpacked"))


def lz4_length(source, at, length):
    if length == 15:
        more = 255
        while more == 255:
            more = source[at]
            at += 1
            length += more
    return length, at


def lz4_block(source, out):
    """Appends the bytes that one LZ4 block, SOURCE, stands for to OUT."""
    at, end = 0, len(source)
    while at < end:
        token = source[at]
        literals, at = lz4_length(source, at + 1, token >> 4)
        out += source[at:at + literals]
        at += literals
        if at >= end:
            return
        distance = source[at] | source[at + 1] << 8
        match, at = lz4_length(source, at + 2, token & 15)
        match += 4
        start = len(out) - distance
        if distance >= match:
            out += out[start:start + match]
        else:  # the match runs into its own output: a repeated pattern
            out += (bytes(out[start:]) * (match // distance + 1))[:match]


def lz4_legacy(payload):
    out, at = bytearray(), 4
    while at + 4 <= len(payload):
        size, = struct.unpack_from("<I", payload, at)
        at += 4
        if size == 0 or size > len(payload) - at:
            break  # the kernel's build appends the unpacked size, which is not a block
        lz4_block(payload[at:at + size], out)
        at += size
    return bytes(out)


def zstd(payload):
    if not shutil.which("zstd"):
        raise Failure(EXIT_SETUP, "this kernel needs the Debian package zstd: apt-get install zstd")
    # The size that is appended makes zstd complain after it has done its work.
    return subprocess.run(["zstd", "-dcq"], input=payload, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout


def unpack_kernel(payload):
    """The ELF vmlinux in PAYLOAD, whichever way Debian compresses it."""
    ways = [(b"\x02\x21\x4c\x18", lz4_legacy),
            (b"\xfd7zXZ\0", lambda data: lzma.LZMADecompressor().decompress(data)),
            (b"\x1f\x8b", lambda data: zlib.decompressobj(31).decompress(data)),
            (b"\x28\xb5\x2f\xfd", zstd)]
    for magic, way in ways:
        if payload.startswith(magic):
            return way(payload)
    raise Failure(EXIT_SETUP, "the kernel is compressed in a way that bochs-run does not know")


def load_segments(elf):
    """The flat image of an ELF vmlinux, its physical address, its entry."""
    if elf[:5] != b"\x7fELF\x02":
        raise Failure(EXIT_SETUP, "the kernel holds no 64-bit ELF file")
    entry, table = struct.unpack_from("<QQ", elf, 24)
    size, count = struct.unpack_from("<HH", elf, 54)
    rows = [struct.unpack_from("<IIQQQQQ", elf, table + i * size) for i in range(count)]
    loads = [row for row in rows if row[0] == 1]
    base = min(row[4] for row in loads)
    image = bytearray(max(row[4] + row[6] for row in loads) - base)
    for _, _, offset, _, where, in_file, _ in loads:
        image[where - base:where - base + in_file] = elf[offset:offset + in_file]
    return bytes(image), base, entry


def prepare_kernel(folder, vmlinuz):
    """Unpacks VMLINUZ here, where that takes a second, not in the emulation."""
    setup_end = 0x202 + vmlinuz[0x201]
    setup_sectors = vmlinuz[0x1F1] or 4
    offset, length = struct.unpack_from("<II", vmlinuz, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    image, base, entry = load_segments(unpack_kernel(vmlinuz[start:start + length]))
    write(os.path.join(folder, "image"), image)
    write(os.path.join(folder, "setup-header"), vmlinuz[0x1F1:setup_end])
    write(os.path.join(folder, "layout.json"),
          json.dumps({"base": base, "entry": entry}).encode())


def build_debian_kernel(folder):
    download_kernel(folder)
    prepare_kernel(folder, read(os.path.join(folder, "vmlinuz")))


def kernel():
    given = os.environ.get("TERN_EMULATE_KERNEL")
    if not given:
        return cached("kernel-debian", build_debian_kernel)
    vmlinuz = read(given)
    return cached("kernel-" + digest(vmlinuz), lambda folder: prepare_kernel(folder, vmlinuz))
