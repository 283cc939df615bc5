#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Token ids of random conversations, beside those of transformers' apply_chat_template.

    check_ids.py --tern build/tern --model SmolLM2.gguf [--folder FOLDER] [--conversations 100] [--seed 1]

The vocabulary is that of a GGUF file, which may be without weights, with byte-level BPE or Gemma 4's pieces;
transformers gets it as a tokenizer.json. First comes the file with its own template if it has one, read by tern from the GGUF
file (Gemma 4's from the tokenizer.json), then each template of FOLDER/**/*.jinja in a tokenizer_config.json beside the
tokenizer.json, with its marks as control tokens. Messages that hold the text of a control token are left out: tern
takes it for text, transformers for the token.
"""

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import jinja2
import oracle
import transformers

ROOT = Path(__file__).resolve().parents[2]
sys.path[1:1] = [str(ROOT / "lab" / "reference"), str(ROOT / "tests" / "e2e")]
import gguf_edit
import gguf_tokenizer

MARKS = re.compile(r"<\|[\w ]{2,40}\|>|</?s>|</?[a-z_]{3,20}>|\[/?[A-Z_]{3,20}\]")


class Vocabulary:
    """A GGUF file's vocabulary for both sides."""

    def __init__(self, path):
        self.file = gguf_edit.read(path)
        self.template = self.file.text("tokenizer.chat_template") if "tokenizer.chat_template" in self.file else None
        kinds = self.file.numbers("tokenizer.ggml.token_type")
        tokens = self.get("tokenizer.ggml.tokens")
        self.control = [t for t, kind in zip(tokens, kinds) if kind == 3]
        self.ends = {name: tokens[self.file.number(f"tokenizer.ggml.{name}_id")] for name in ("bos_token", "eos_token")}

    def get(self, key):
        """A value of the file, as gguf_tokenizer asks for it."""
        kind, value = self.file[key]
        if kind == gguf_edit.ARRAY:
            return self.file.numbers(key) if key.endswith("token_type") else self.file.texts(key)
        return self.file.text(key) if kind == gguf_edit.STRING else self.file.number(key)

    def write(self, folder, template):
        """tokenizer.json with the template beside it; the control tokens."""
        tokenizer = gguf_tokenizer.tokenizer_of(self)
        marks = sorted({mark for mark in MARKS.findall(template)} - set(self.control))
        tokenizer.add_special_tokens(marks)
        tokenizer.save(str(folder / "tokenizer.json"))
        config = {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": template, **self.ends}
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
        return [*self.control, *marks]


def theirs(tokenizer, job):
    """Ids as transformers makes them; None where the template refuses."""
    messages, had = oracle.opened(job["messages"])
    ways = [messages, *([job["messages"]] if had else [])]
    if any("content" not in message for message in messages):
        ways += [[{"role": m["role"], "content": "", **m} for m in way] for way in ways]
    for way in ways:
        try:
            ids = tokenizer.apply_chat_template(
                way, tools=job.get("tools"), add_generation_prompt=not job.get("no_answer", False), **(job.get("variables") or {})
            )
            return list(ids)
        except Exception as e:  # whatever a template does; where it refuses by itself, other ways are not tried
            if type(e) is jinja2.TemplateError:
                break
    return None


def ours(command, job):
    asked = {"messages": job["messages"], "add_generation_prompt": not job.get("no_answer", False)}
    asked |= {key: job[key] for key in ("tools", "variables") if job.get(key) is not None}
    result = subprocess.run([*command, "--messages", "-", "--json"], input=json.dumps(asked).encode(), capture_output=True)
    if result.returncode == 1:
        return None, result.stderr.decode().strip()
    result.check_returncode()
    return json.loads(result.stdout)["tokens"], ""


def compare(command, tokenizer, control, options):
    """Returns how many conversations gave ids on both sides, were refused by both, and were left out, and the first
    difference."""
    r = random.Random(options.seed)
    equal = refused = left_out = 0
    while equal + refused < options.conversations:
        job = oracle.conversation(r)
        said = json.dumps(job, ensure_ascii=False)
        if any(json.dumps(mark, ensure_ascii=False)[1:-1] in said for mark in control):
            left_out += 1
            continue
        wanted = theirs(tokenizer, job)
        got, why = ours(command, job)
        if got != wanted:
            return (equal, refused, left_out), f"{said}\ntransformers: {wanted}\ntern:         {got} {why}"
        equal += wanted is not None
        refused += wanted is None
    return (equal, refused, left_out), None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tern", required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--conversations", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    vocabulary = Vocabulary(options.model)
    read = vocabulary.get("tokenizer.ggml.model") != "gemma4"
    own = [options.tern, "chat-template", "-m", options.model] if read else None
    cases = [("the file's own", vocabulary.template, own)] if vocabulary.template else []
    for path in sorted(options.folder.rglob("*.jinja")) if options.folder else []:
        cases.append((path.stem, path.read_text(), None))
    differ = equal = 0
    print("| template | equal ids | refused by both | left out |\n|---|---|---|---|")
    for name, template, command in cases:
        with tempfile.TemporaryDirectory() as folder:
            control = vocabulary.write(Path(folder), template)
            tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
            command = command or [options.tern, "chat-template", "--tokenizer", Path(folder) / "tokenizer.json"]
            counts, difference = compare(command, tokenizer, control, options)
        differ += difference is not None
        equal += counts[0]
        print(f"| {name} | {' | '.join(map(str, counts))} |{' DIFFERS' if difference else ''}", flush=True)
        if difference:
            print(difference, file=sys.stderr)
    print(f"{len(cases)} templates, {differ} differ, {equal} conversations with equal ids", file=sys.stderr)
    return 1 if differ or equal == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
