# SPDX-License-Identifier: Apache-2.0
"""lm-eval's local-completions on tasks of its own, tokenizer included: each log-likelihood and each figure is the one
that the command line's logits give."""

import json
import math
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import numpy

from check import equal, options

CHOICES = [
    {"question": f"What is {a}+{b}?", "choices": [str(a + b), str(a + b + 1), "a red house", "the panda said: 4"], "answer": 0}
    for a in range(1, 9)
    for b in (2, 5)
]
TEXTS = [
    {"text": "Once upon a time Luna the panda saw a small red house at the sea."},
    {"text": "What is 2+2? Luna said: 4. Then she went home."},
    {"text": " ".join(f"{n} and {n} is {2 * n}." for n in range(1, 30))},
]
TASKS = {
    "tern_choices": """
output_type: multiple_choice
doc_to_text: "Q: {{question}}\\nA:"
doc_to_choice: choices
doc_to_target: answer
metric_list: [{metric: acc}]
""",
    "tern_texts": """
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{text}}"
metric_list: [{metric: byte_perplexity}]
""",
}
LONGEST = 512  # positions of the small model


class CommandLine:
    """Log-likelihoods out of the logits that tern logits saves."""

    def __init__(self, o, folder):
        self.o, self.file = o, folder / "logits"
        self.address = o.address.removesuffix("/v1")
        with urllib.request.urlopen(f"{self.address}/tokenizer_info") as reply:
            self.info = json.load(reply)
        [self.bos], [self.eos] = self.encode(self.info["bos_token"]), self.encode(self.info["eos_token"])
        self.ends = 0  # requests after which the model would end the text

    def encode(self, text):
        body = json.dumps({"prompt": text, "add_special_tokens": False}).encode()
        request = urllib.request.Request(f"{self.address}/tokenize", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)["tokens"]

    def likelihood(self, context, continuation):
        """The sum of ln p, and whether each token was the likeliest one."""
        ids = context + continuation
        command = [self.o.tern, "logits", "-m", self.o.model, "--tokens", ",".join(map(str, ids)), "-a", "--force", "-o", self.file]
        subprocess.run(command, check=True, capture_output=True)
        logits = numpy.fromfile(self.file, "<f4").astype(float).reshape(len(ids), -1)
        self.ends += logits[-1].argmax() == self.eos
        logits = logits[len(context) - 1 : -1]
        top = logits.max(1)
        sums = top + numpy.log(numpy.exp(logits - top[:, None]).sum(1))
        of = logits[range(len(continuation)), continuation]
        return (of - sums).sum(), bool((of == top).all())

    def choices(self, doc):
        context = f"Q: {doc['question']}\nA:"
        n = len(self.encode(context))
        for choice in doc["choices"]:
            ids = self.encode(f"{context} {choice}")
            yield self.likelihood(ids[:n], ids[n:])

    def text(self, doc):
        return self.likelihood([self.bos], self.encode(doc["text"]))


def evaluate(o, folder, bos, concurrent, batch):
    """Returns lm-eval's figures, and the text that it heard of each document."""
    for name, docs in (("tern_choices", CHOICES), ("tern_texts", TEXTS)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
        (folder / f"{name}.yaml").write_text(
            f"task: {name}\ndataset_path: json\ntest_split: test\ndataset_kwargs:\n  data_files: {{test: {folder / name}.jsonl}}\n{TASKS[name]}")
    given = {"model": "m", "base_url": f"{o.address}/completions", "max_length": LONGEST, "custom_prefix_token_id": bos, "num_concurrent": concurrent}
    out = folder / f"out-{concurrent}-{batch}"
    command = [sys.executable, "-m", "lm_eval", "run", "--model", "local-completions", "--tasks", ",".join(TASKS), "--include_path", folder,
               "--model_args", ",".join(f"{k}={v}" for k, v in given.items()), "--batch_size", str(batch), "--output_path", out, "--log_samples"]
    away = dict.fromkeys(("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"), "1") | {"HF_HOME": str(folder / "hf")}
    done = subprocess.run(command, env=os.environ | away, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout[-3000:] + done.stderr[-3000:])
    [results] = out.rglob("results_*.json")
    samples = {}
    for name in TASKS:
        [file] = out.rglob(f"samples_{name}_*.jsonl")
        lines = sorted(map(json.loads, file.read_text().splitlines()), key=lambda line: line["doc_id"])
        samples[name] = [line["resps"] for line in lines]
    return json.loads(results.read_text())["results"], samples


def close(is_, should, what):
    if not math.isclose(is_, should, rel_tol=1e-6):
        raise AssertionError(f"{what}: {is_!r} is not {should!r}")


def main():
    o = options()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        line = CommandLine(o, folder)
        choices = [list(line.choices(doc)) for doc in CHOICES]
        texts = [line.text(doc)[0] for doc in TEXTS]
        assert line.ends > 0, "no request after which the text could end: ask other questions"
        right = [max(range(len(c)), key=lambda i: c[i][0]) == doc["answer"] for doc, c in zip(CHOICES, choices)]
        size = sum(len(doc["text"].encode()) for doc in TEXTS)
        figures, samples = evaluate(o, folder, line.bos, 1, 1)
        for doc, told, should in zip(CHOICES, samples["tern_choices"], choices):
            for i, ([[sum_, greedy]], (likelihood, likeliest)) in enumerate(zip(told, should)):
                close(float(sum_), likelihood, f"ln p of {doc['question']} {doc['choices'][i]}")
                equal(greedy, str(likeliest), f"the likeliest after {doc['question']}")
        for doc, told, should in zip(TEXTS, samples["tern_texts"], texts):
            close(float(str(told[0][0])), should, f"ln p of {doc['text'][:20]}")
        close(figures["tern_choices"]["acc,none"], sum(right) / len(right), "acc")
        close(figures["tern_texts"]["byte_perplexity,none"], math.exp(-sum(texts) / size), "byte_perplexity")
        for how in ((8, 1), (4, 5)):
            equal(evaluate(o, folder, line.bos, *how)[1], samples, f"what was heard with {how} at once")


main()
