# SPDX-License-Identifier: Apache-2.0
"""Documents of measurements, as lab/verify-figures reads them: their digest, and how they are written
(docs/receipts.md)."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import re
import statistics
import struct
import tempfile
from pathlib import Path

import stats

VERSION = "1.0.0"
COMPARISON = "urn:tern:comparison:1.0.0"
BENCHMARK = "urn:tern:benchmark:1.0.0"
MEASURED = {"kind": "measured", "note": "", "not_recorded": []}


def canonical(value) -> bytes:
    """The form of a value that its digest is made of: the same however the JSON is written."""
    if value is None:
        return b"n"
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, (int, float)):
        whole = isinstance(value, int) or (abs(value) <= 2.0**53 and value == int(value))
        return b"i%d;" % int(value) if whole else b"r%s;" % struct.pack(">d", value).hex().encode()
    if isinstance(value, str):
        text = value.encode()
        return b"s%d:%s" % (len(text), text)
    if isinstance(value, list):
        return b"[" + b"".join(canonical(element) for element in value) + b"]"
    parts = sorted((name.encode(), member) for name, member in value.items())
    return b"{" + b"".join(b"%d:%s" % (len(n), n) + canonical(m) for n, m in parts) + b"}"


def seal(document: dict) -> dict:
    """The document with the digest of its content."""
    content = {k: v for k, v in document.items() if k not in ("digest", "signature")}
    value = hashlib.sha256(canonical(content)).hexdigest()
    return content | {"digest": {"algorithm": "sha256-canonical-json", "value": value}}


def refuse_existing(path: Path | None, force: bool) -> None:
    """Raises where a document would replace a file without --force."""
    if path and not force and os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, "exists (--force replaces it)", str(path))


def one_line(content) -> str:
    """Writes documents as they are stored, on one line: they are many and long, and `python3 -m json.tool FILE` shows a
    field a line."""
    return json.dumps(content, separators=(",", ":")) + "\n"


def write(path: Path, content: dict) -> None:
    """Writes the document on one line; the file is complete, or it is not there at all."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(one_line(content))
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def write_as_one_line(path: Path) -> None:
    """A document that the program wrote with many lines: the same content, so the same digest."""
    write(path, json.loads(path.read_text(encoding="utf-8")))


def file_sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def model(path: Path) -> dict:
    """A model by name, size and digest: where it lies stays private."""
    return {"path": path.name, "bytes": path.stat().st_size, "sha256": file_sha256(path)}


def processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor()
    found = re.search(r"^model name\s*: (.*)$", text, re.M)
    return found[1] if found else platform.processor()


def machine() -> dict:
    release = re.match(r"[\d.]*", platform.release())[0]
    return {"cpu": processor(), "cores": len(os.sched_getaffinity(0)),
            "architecture": platform.machine(), "os": f"{platform.system()} {release}",
            "load_average": os.getloadavg()[0]}


def spread(values: list[float]) -> float:
    """(largest - smallest) / median, in percent."""
    return 100 * (max(values) - min(values)) / statistics.median(values)


def figures(runs: dict[str, list[float]]) -> dict:
    """Returns what one side of a comparison says about its runs."""
    return {"runs": runs,
            "medians": {name: statistics.median(v) for name, v in runs.items()},
            "spread_percent": {name: spread(v) for name, v in runs.items()}}


def ratio(estimate: stats.Estimate, median: float) -> dict:
    return {"ratio": estimate.ratio, "low": estimate.low, "high": estimate.high, "median": median}


def comparison(method: str, began: str, models: list[dict], machine_of_both: dict,
               sides: dict[str, dict], ratios: dict[str, dict]) -> dict:
    """A sealed comparison of sides["a"] and sides["b"]."""
    mock = any(side["compute_path"] == "mock" for side in sides.values())
    return seal({
        "$schema": COMPARISON, "schema_version": VERSION, "origin": MEASURED, "timestamp": began,
        "compute_path": "mock" if mock else "real", "comparison": "b/a", "method": method,
        "level": stats.LEVEL, "models": models, "machine": machine_of_both, **sides,
        "ratios": ratios})
