# SPDX-License-Identifier: Apache-2.0
"""Seeds for fuzz_json: the small files of this source tree, and one of everything.

    tests/fuzz/seeds_json.py FOLDER
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EVERYTHING = r'{"a": [0, -1, 1.5, 1e-3, -2E+4, true, false, null], "é\u00e9\ud83d\ude42\"\\\/\b\f\n\r\t": {"": []}}'


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "everything").write_text(EVERYTHING)
    for path in (ROOT / "CMakePresets.json", *(ROOT / "tests" / "golden").glob("*.json")):
        if path.stat().st_size < 65536:
            (folder / path.name).write_bytes(path.read_bytes())


if __name__ == "__main__":
    main()
