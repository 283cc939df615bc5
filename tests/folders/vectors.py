# SPDX-License-Identifier: Apache-2.0
"""Folders as sentence-transformers saves them: vectors of texts by tern beside its own, for each pooling."""

import json

import families
import kinds
import numpy as np
import sentence_transformers
import transformers
from sentence_transformers import SentenceTransformer, models

TEXTS = ["hello", "Two words.", "caf\u00e9 na\u00efve \u4e2d\u6587", "A longer text, of 2 sentences! Is it?", "spaces   and\nlines", "x"]  # older versions cut white space off both ends
# family, tokenizer, pooling, whether vectors have the length 1. A pooling that tern does not have must be refused by name.
FOLDERS = [
    ("bert", "words", "mean", True),
    ("bert", "words", "cls", False),
    ("bert", "words", "max", True),
    ("xlm-r", "unigram", "cls", True),
    ("xlm-r", "unigram", "mean", True),
    ("qwen3", "qwen", "lasttoken", True),
    ("llama", "llama3", "mean", True),
    ("mistral", "always", "lasttoken", False),
]


def write(where, family, made, pooling, normal):
    """Saves a model, its tokenizer, and the modules that make vectors; returns what reads them."""
    made.chat_template = None  # sentence-transformers would make a chat of each text
    made.pad_token = made.pad_token or made.eos_token
    rows = len(made) + 5
    config = families.config_of(family, rows, {"pad_token_id": made.pad_token_id})
    model = families.make(family, config)
    plain = where / "plain"
    getattr(model, "model", model).save_pretrained(plain)
    made.save_pretrained(plain)
    modules = [models.Transformer(str(plain), max_seq_length=200)]
    modules.append(models.Pooling(config.hidden_size, pooling_mode=pooling))
    vectors = SentenceTransformer(modules=modules + [models.Normalize()] * normal, device="cpu")
    vectors.save(str(where / "saved"))
    return vectors


def refusal(run, arguments, folder, file):
    try:
        run(arguments.tern, "convert", folder, file, "--force")
    except RuntimeError as error:
        return "" if '"pooling_mode' in str(error) else str(error)
    return "a pooling that tern does not have was accepted"


def check_folder(where, run, arguments, make_tokenizer, family, tokenizer, pooling, normal):
    vectors = write(where, family, make_tokenizer(tokenizer), pooling, normal)
    file = where / "vectors.gguf"
    if pooling == "max":
        return refusal(run, arguments, where / "saved", file)
    run(arguments.tern, "convert", where / "saved", file, "--force")
    lines = "".join(json.dumps({"prompt": x}) + "\n" for x in TEXTS).encode()
    seen = [json.loads(x)["embedding"] for x in run(arguments.tern, "embed", "-m", file, input=lines).decode().splitlines()]
    expected = vectors.encode(TEXTS)
    cosines = [float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for a, b in zip(np.array(seen), expected, strict=True)]
    return f"cosines {cosines}" if min(cosines) < 0.9999 else ""


def check(where, run, arguments, make_tokenizer):
    """Each complaint about such folders."""
    found = []
    for row in FOLDERS:
        name = f"vectors: {row[0]}, {row[2]}"
        if families.config_of(row[0], 1000, {}) is None:
            print(f"{name}: transformers {transformers.__version__} has no such class", flush=True)
            continue
        print(name, "by sentence-transformers", sentence_transformers.__version__, flush=True)
        path = where / name.replace(": ", "_").replace(", ", "_")
        path.mkdir(exist_ok=True)
        try:
            said = check_folder(path, run, arguments, make_tokenizer, *row)
        except (RuntimeError, ValueError, TypeError, OSError) as error:
            said = f"{type(error).__name__}: {error}"
        found += [f"{name}: {said}"] if said else []
    return found
