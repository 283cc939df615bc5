# SPDX-License-Identifier: Apache-2.0
"""Folders of encoders with a head that scores pairs: what tern serve says of a query and documents, beside the
CrossEncoder of sentence-transformers, which has the head's number as it is."""

import json
import subprocess
import urllib.request

import families
import numpy as np
import torch
import transformers
from tokenizers.processors import TemplateProcessing

QUERY = "what is a caf\u00e9?"
TEXTS = ["hello", "Two words.", "caf\u00e9 na\u00efve \u4e2d\u6587", "A longer text, of 2 sentences! Is it?", "spaces   and\nlines", "x"]
# family, class, tokenizer. The tanh form of GELU is the one that tern computes.
FOLDERS = [("bert", "Bert", "words"), ("xlm-r", "XLMRoberta", "unigram")]
AROUND = {"bert": ("[CLS]", "[SEP]"), "xlm-r": ("<s>", "</s>")}
PAIRS = {"bert": {"single": "[CLS] $A [SEP]", "pair": "[CLS] $A [SEP] $B:1 [SEP]:1"},
         "xlm-r": {"single": "<s> $A </s>", "pair": "<s> $A </s> </s> $B </s>"}}  # fmt: skip
BOUND = 1e-4  # in deviations of the scores


def write(where, family, kind, made):
    """Saves a model with random weights and its tokenizer; returns what scores with them."""
    made.pad_token = made.pad_token or made.eos_token
    config = families.config_of(family, len(made) + 5, {"pad_token_id": made.pad_token_id})
    config.num_labels, config.hidden_act = 1, "gelu_new"
    torch.manual_seed(5)
    model = getattr(transformers, kind + "ForSequenceClassification")(config).eval()
    for name, values in model.named_parameters():
        with torch.no_grad():
            values.normal_(1.0 if "LayerNorm.weight" in name else 0.0, 0.2)
    model.save_pretrained(where)
    made.backend_tokenizer.post_processor = TemplateProcessing(**PAIRS[family], special_tokens=[(x, made.convert_tokens_to_ids(x)) for x in AROUND[family]])
    made.save_pretrained(where)

    def scores(query, texts):
        with torch.no_grad():
            return np.array([model(**made(query, text, return_tensors="pt", return_token_type_ids=family == "bert")).logits.item() for text in texts])

    return scores


def ask(arguments, file):
    """The scores of tern serve, in the order of the texts, in the forms of Jina and of text-embeddings-inference."""
    server = subprocess.Popen([arguments.tern, "serve", "-m", file, "--kv", "f32", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        address = next(line for line in server.stdout if b"http://" in line).decode().split("http://")[1].split("/")[0].strip()
        found = []
        for fields in ({"documents": TEXTS}, {"texts": TEXTS, "raw_scores": True}):
            request = urllib.request.Request(f"http://{address}/rerank", json.dumps({"query": QUERY} | fields).encode(), {"Content-Type": "application/json"})
            reply = json.load(urllib.request.urlopen(request, timeout=60))
            results = reply["results"] if "documents" in fields else reply
            found.append({r["index"]: r.get("relevance_score", r.get("score")) for r in results})
    finally:
        server.terminate()
        server.wait()
    return [np.array([x[i] for i in range(len(TEXTS))]) for x in found]


def check(where, run, arguments, make_tokenizer):
    complaints = []
    for family, kind, tokenizer in FOLDERS:
        name = f"pairs: {family}"
        if families.config_of(family, 1000, {}) is None:
            print(f"{name}: transformers {transformers.__version__} has no such class", flush=True)
            continue
        folder = where / name.replace(": ", "_")
        wanted = write(folder, family, kind, make_tokenizer(tokenizer))(QUERY, TEXTS)
        run(arguments.tern, "convert", folder, folder.with_suffix(".gguf"), "--force")
        for seen in ask(arguments, folder.with_suffix(".gguf")):
            worst = float(np.max(np.abs(seen - wanted)) / wanted.std())
            print(f"{name}: largest difference {worst:.2g} deviations of the scores", flush=True)
            complaints += [f"{name}: {seen} where transformers has {wanted}"] if worst > BOUND else []
    return complaints
