# SPDX-License-Identifier: Apache-2.0
"""IEBIN folders, read, changed and written without tern: a list of tensors and files of bytes."""

import json
from pathlib import Path

LIST, DATA, KEYS = "model.ie.json", "model.ie.bin", "model.ie.gguf"


class Iebin:
    """The list of a folder, and its bytes by the names of files."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.list = json.loads((self.folder / LIST).read_text())

    def tensor(self, name):
        return next(t for t in self.list["tensors"] if t["name"] == name)

    def bytes_of(self, entry):
        raw = (self.folder / entry["file"]).read_bytes()
        return raw[entry["file_data_offset"] :][: entry["nbytes"]]

    def write(self, text=None):
        (self.folder / LIST).write_text(json.dumps(self.list) if text is None else text)


def write_names(folder, tensors, **fields):
    """The first form: raw tensors {name: Stored} of a Hugging Face model, 64 bytes apart."""
    entries, blob = [], b""
    for name, t in tensors.items():
        raw = t.array.tobytes()
        blob += bytes(-len(blob) % 64)
        entries.append({"name": name, "dtype": t.dtype, "shape": t.shape, "nbytes": len(raw), "offset": len(blob)})
        blob += raw
    listed = {"version": 1, "dtype": "mixed", "weights_bin": DATA, "tensors": entries} | fields
    (folder / DATA).write_bytes(blob)
    (folder / LIST).write_text(json.dumps(listed))
