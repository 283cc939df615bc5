#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Folders as transformers saves them, converted by tern: its results beside those of transformers.

    check.py --tern build/tern --tool build/tests/tokenize_tool [--texts 2000] [--seed 1] [--keep FOLDER] [FAMILY ...]

For each family (families.py) a small model with random weights and a tokenizer of its kind (kinds.py) are saved by
save_pretrained, with chat templates for chats with and without tools and five tokens that end a text. Then

- ids of texts with control tokens, with and without tokens around them, are equal;
- conversations, with tools and without, are the same text;
- logits of a sequence are close, and the best token of each position is the same (encoders: their vectors);
- every token that ends a text in generation_config.json does in tern.

The family "older" is that of folders without a tokenizer.json (older.py), the family "vectors" that of folders of
sentence-transformers (vectors.py), "pairs" that of encoders that score pairs (pairs.py), the family "adapters" that of adapters which PEFT saves (adapters.py). Families that the installed transformers does not have are named and left out.
"""

import argparse
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import families
import kinds
import numpy as np
import older
import pairs
import torch
import transformers
import vectors
from texts import Texts

PLAIN = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}\n{% endfor %}{% if add_generation_prompt %}<answer>{% endif %}"
TOOLS = "{{ bos_token }}{{ tools | tojson }}{% for m in messages %}[{{ m.role }}] {{ m.content | trim }}{% endfor %}{% if add_generation_prompt %}[answer]{% endif %}"
TALK = [{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "What's 2+2?\n"},
        {"role": "assistant", "content": "4"}, {"role": "user", "content": "A\u0301 \u4e2d"}]  # fmt: skip
TOOL = {"type": "function", "function": {"name": "f", "description": "g", "parameters": {"type": "object", "properties": {}}}}
# The largest difference of logits, in their deviations. Before ternary matrices activations are rounded to codes, of
# which one may become its neighbour.
BOUND, BOUND_OF_CODES = 1e-4, 5e-2


def run(*command, **options):
    done = subprocess.run([str(x) for x in command], capture_output=True, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(str(x) for x in command)}: {done.stderr.decode()}")
    return done.stdout


class Folder:
    """A family's model and tokenizer, saved and converted."""

    def __init__(self, name, where, tern):
        self.name, self.tern, self.path = name, tern, where / name.replace(" ", "_").replace(",", "")
        self.file = self.path.with_suffix(".gguf")
        kind, tokenizer, settings, change = families.FAMILIES[name]
        self.encoder = kind in families.ENCODERS
        self.tokenizer = self.make_tokenizer(tokenizer)
        self.rows = len(self.tokenizer) + 5
        self.ends = list(range(self.rows - 10, self.rows - 6))
        special = {f"{x}_token_id": getattr(self.tokenizer, f"{x}_token_id", None) for x in ("bos", "eos", "pad")}
        config = families.config_of(name, self.rows, {k: v for k, v in special.items() if v is not None})
        self.model = families.make(name, config)
        self.save(settings, change)

    @staticmethod
    def make_tokenizer(kind):
        if kind == "own":  # the class's own result for a vocabulary
            vocabulary, merges = kinds.pieces_of_text()
            if hasattr(transformers.LlamaTokenizer, "backend_tokenizer"):
                made = transformers.LlamaTokenizer(vocab=vocabulary, merges=merges)
            else:
                made = transformers.LlamaTokenizerFast(tokenizer_object=kinds.text_level("legacy"))
        else:
            inner = kinds.MAKERS[kind]()
            known = set(inner.get_vocab())
            names = {"bos_token": ("<|begin_of_text|>", "<s>", "[CLS]"), "unk_token": ("<unk>", "[UNK]"),
                     "eos_token": ("<|end_of_text|>", "<|im_end|>", "</s>", "[SEP]"), "pad_token": ("<pad>", "[PAD]")}  # fmt: skip
            roles = {role: next((x for x in texts if x in known), None) for role, texts in names.items()}
            made = transformers.PreTrainedTokenizerFast(tokenizer_object=inner, **{k: v for k, v in roles.items() if v})
        made.chat_template = {"default": PLAIN, "tool_use": TOOLS}
        return made

    def save(self, settings, change):
        shards = {"max_shard_size": "150KB"} if settings.get("sharded") else {}
        if self.encoder:
            self.model.save_pretrained(self.path)
        else:
            self.ends = [self.model.config.eos_token_id or 0, *self.ends]
            self.model.generation_config = transformers.GenerationConfig(eos_token_id=self.ends)
            self.model.save_pretrained(self.path, safe_serialization=True, **shards)
        self.tokenizer.save_pretrained(self.path)
        config = json.loads((self.path / "config.json").read_text())
        if "bitnet" in settings:
            config["quantization_config"] = settings["bitnet"]
        config.update(change)
        if settings.get("blocks"):
            families.store_blocks(self.path)
        (self.path / "config.json").write_text(json.dumps(config, indent=2))
        if change:  # transformers reads a changed folder in this way
            self.model = families.read(self.name, self.path)
        self.said = run(self.tern, "convert", self.path, self.file, "--force")

    # ---- comparisons; each returns what is wrong, or "" ----

    def check_ids(self, tool, n, seed):
        specials = [x for x in self.tokenizer.get_added_vocab() if x.strip()]
        made = Texts(seed, specials)
        made.kinds = [made.special] * len(made.kinds) + made.kinds  # half with control tokens
        texts = [x.decode() for x in made.make(2 * n) if is_text(x)][:n]
        lines = "".join(x.encode().hex() + "\n" for x in texts).encode()
        wrong = []
        for options, around in (((), False), (("--special",), True)):
            said = run(tool, self.file, "--parse", *options, input=lines).decode().splitlines()
            expected = self.tokenizer(texts, add_special_tokens=around).input_ids
            wrong += [(t, e, s.split("\t")[0]) for t, e, s in zip(texts, expected, said, strict=True)
                      if s.split("\t")[0] != " ".join(map(str, e))]  # fmt: skip
        return f"{len(wrong)} of {2 * n} texts have other ids: {wrong[0]!r}" if wrong else ""

    def check_chat(self):
        for tools in (None, [TOOL]):
            expected = self.tokenizer.apply_chat_template(TALK, tools=tools, tokenize=False, add_generation_prompt=True)
            talk = json.dumps({"messages": TALK} | ({"tools": tools} if tools else {})).encode()
            said = json.loads(run(self.tern, "chat-template", "-m", self.file, "--messages", "-", "--json", input=talk))
            bos = self.tokenizer.bos_token or ""
            seen = said["text"][len(bos) :] if said["text"].startswith(bos) and not expected.startswith(bos) else said["text"]
            if seen != expected:
                return f"with tools {tools is not None}: {said['text']!r}, not {expected!r}"
        return ""

    def check_ends(self, tool):
        seen = {int(x) for x in run(tool, self.file, "--ends").split()}
        return f"{sorted(set(self.ends) - seen)} do not end a text" if set(self.ends) - seen else ""

    def check_numbers(self, seed):
        ids = np.random.default_rng(seed).integers(5, self.rows - 10, 40).tolist()
        with torch.no_grad():
            out = self.model(torch.tensor([ids]))
        if self.encoder:
            vector = out.last_hidden_state[0].mean(0).numpy()
            line = json.dumps({"tokens": ids}).encode()
            said = json.loads(run(self.tern, "embed", "-m", self.file, "--pooling", "mean", input=line))
            seen = np.array(said["embedding"])
            cosine = seen @ vector / np.linalg.norm(seen) / np.linalg.norm(vector)
            return f"cosine {cosine}" if cosine < 0.9999 else ""
        expected = out.logits[0].float().numpy()
        where = self.path / "logits.f32"
        exact = ["--act-prec", "fp32"] if families.FAMILIES[self.name][2].get("blocks") else []  # as transformers computes
        run(self.tern, "logits", "-m", self.file, "--tokens", ",".join(map(str, ids)), "--all", "--kv", "f32",
            "--output", where, "--force", *exact)  # fmt: skip
        seen = np.fromfile(where, "<f4").reshape(expected.shape)
        error = np.abs(seen - expected).max() / expected.std()
        same = (seen.argmax(1) == expected.argmax(1)).sum()
        print(f"  logits differ by {error:.1e} deviations, best token equal in {same} of {len(ids)}", flush=True)
        bound = BOUND_OF_CODES if "bitnet" in families.FAMILIES[self.name][2] else BOUND
        return f"{same} of {len(ids)} best tokens, {error:.2e}" if same < len(ids) or error > bound else ""


def is_text(data):
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def check(name, where, arguments):
    """Each complaint about a family."""
    if families.config_of(name, 1000, {}) is None:
        print(f"{name}: transformers {transformers.__version__} has no such class", flush=True)
        return []
    print(name, flush=True)
    try:
        folder = Folder(name, where, arguments.tern)
        found = [folder.check_ids(arguments.tool, arguments.texts, arguments.seed), folder.check_numbers(arguments.seed)]
        if not folder.encoder:
            found += [folder.check_chat(), folder.check_ends(arguments.tool)]
    except (RuntimeError, ValueError, TypeError, OSError) as error:
        found = [f"{type(error).__name__}: {error}"]
    return [f"{name}: {x}" for x in found if x]


OTHERS = {
    "older": lambda where, arguments: older.check(where, run, arguments),
    "vectors": lambda where, arguments: vectors.check(where, run, arguments, Folder.make_tokenizer),
    "pairs": lambda where, arguments: pairs.check(where, run, arguments, Folder.make_tokenizer),
    "adapters": lambda where, arguments: adapters(where, arguments),
}


def adapters(where, arguments):
    if importlib.util.find_spec("peft") is None:
        print("adapters: peft is not installed", flush=True)
        return []
    return importlib.import_module("adapters").check(where, run, arguments)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tern", required=True, type=Path)
    parser.add_argument("--tool", required=True, type=Path)
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("families", nargs="*", default=[*families.FAMILIES, *OTHERS], metavar="FAMILY")
    arguments = parser.parse_args()
    transformers.logging.set_verbosity_error()
    complaints = []
    with tempfile.TemporaryDirectory() as temporary:
        where = arguments.keep or Path(temporary)
        where.mkdir(exist_ok=True)
        for name in arguments.families:
            complaints += OTHERS[name](where, arguments) if name in OTHERS else check(name, where, arguments)
    for complaint in complaints:
        print(complaint[:2000], file=sys.stderr)
    print(f"{len(arguments.families)} families, transformers {transformers.__version__}: {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
