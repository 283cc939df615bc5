# SPDX-License-Identifier: Apache-2.0
"""Seeds for fuzz_receipt: receipts of small models, by the program itself.

    tests/fuzz/seeds_receipt.py FOLDER [PROGRAM]      PROGRAM: build/tern
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = {
    "one": ("bitnet-tiny", ["run", "--tokens", "1", "-n", "1"]),
    "sampled": ("llama-tiny-q4_1", ["run", "--tokens", "1,2,3", "-n", "17", "--temp", "0.8",
                                    "--logit-bias", "5=1", "--stop-token", "9"]),
    "bench": ("bitnet-tiny", ["bench", "-p", "2", "-n", "1", "--repeat", "1"]),
}  # fmt: skip


def main():
    folder = Path(sys.argv[1])
    tern = str(Path(sys.argv[2] if len(sys.argv) > 2 else "build/tern").resolve())
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as models:
        for name, (preset, words) in RUNS.items():
            model = Path(models) / f"{preset}.gguf"
            path = folder / f"{name}.json"
            if not model.exists():  # two runs share a model
                subprocess.run([tern, "synth", "--preset", preset, str(model)], check=True)
            command = [tern, *words, "-m", str(model), "--receipt", str(path)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            compact = json.dumps(json.loads(path.read_text()), separators=(",", ":"))
            path.with_suffix(".compact").write_text(compact)


if __name__ == "__main__":
    main()
