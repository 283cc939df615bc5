# SPDX-License-Identifier: Apache-2.0
"""Vectors of texts by sentence-transformers, for e2e_minilm.

    python lab/reference/embed.py FOLDER > tests/golden/vectors/minilm.json

Needs requirements-embed.txt. The library cuts texts where the folder's settings say so, as tern does not: here
a text may have all positions that the model was trained with.
"""

import json
import os
import sys

os.environ["TQDM_DISABLE"] = "1"

import sentence_transformers
import torch

LONG = "The river rises in the hills, runs past two mills and a stone bridge, and joins the sea in the north. "
TEXTS = [
    "hello",
    "A cat sits on the mat.",
    "A kitten rests on a rug.",
    "Stock prices fell sharply after the bank raised its rates.",
    "What is 17 + 25? It is 42; 3.14159 is something else.",
    "Où est la bibliothèque? ÀÉÎÕÜ naïve Straße",
    "\u65e5\u672c\u8a9e\u306e\u6587\u7ae0 and \u4e2d\u6587 mixed with English",
    "def add(a, b):\n    return a + b  # a comment\n",
    "  spaces   and\ttabs, UPPER and lower, don't; e-mail@example.org  ",
    "\U0001f600 smile, then an unknown sign: \u2603\ufe0f",
    LONG * 4,
    LONG * 20,
]


def main(folder):
    model = sentence_transformers.SentenceTransformer(folder, device="cpu")
    model.max_seq_length = 512
    vectors = model.encode(TEXTS, batch_size=1, convert_to_numpy=True)
    counts = [len(model.tokenizer(text)["input_ids"]) for text in TEXTS]
    said = {
        "engine": f"sentence-transformers {sentence_transformers.__version__} (torch {torch.__version__})",
        "texts": [
            {"text": text, "tokens": n, "vector": [round(float(x), 7) for x in vector]}
            for text, n, vector in zip(TEXTS, counts, vectors)
        ],
    }
    json.dump(said, sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main(sys.argv[1])
