# SPDX-License-Identifier: Apache-2.0
"""Folders without a tokenizer.json: models of SentencePiece that are trained here, and byte-level BPE as vocab.json and
merges.txt, beside sentencepiece and beside what transformers makes of the same files."""

import io
import json

import kinds
import sentencepiece
import transformers
from texts import Texts

BPE = {"model_type": "bpe", "byte_fallback": True, "normalization_rule_name": "identity", "remove_extra_whitespaces": False,
       "character_coverage": 0.98}  # fmt: skip
UNIGRAM = {"model_type": "unigram"}
GEMMA = {"add_dummy_prefix": False, "user_defined_symbols": ["<b>", "\n\n", "\n\n\n", "\u2581\u2581"], "pad_id": 0, "eos_id": 1, "bos_id": 2, "unk_id": 3}
SIZE = 3000
# name: how it is trained, tokenizer_config.json, whether its ids are those of sentencepiece. The others follow transformers:
# where control tokens or beginnings of texts are treated in another way, and where characters are replaced as wholes.
MODELS = {
    "llama 2": (BPE, {}, True),
    "llama 2, not legacy": (BPE, {"legacy": False}, False),
    "gemma": (BPE | GEMMA, {}, True),
    "own pieces": (BPE | {"user_defined_symbols": ["<start>", "<b>", "a.b"]}, {}, False),
    "replacements": ({"model_type": "bpe"}, {}, False),
    "no bytes": (BPE | {"byte_fallback": False}, {}, True),
    "unigram": (UNIGRAM, {}, True),
    "unigram, bytes": (UNIGRAM | {"byte_fallback": True, "normalization_rule_name": "identity", "remove_extra_whitespaces": False}, {}, True),
    "unigram, own pieces": (UNIGRAM | {"user_defined_symbols": ["<start>", "<b>"]}, {}, False),
    "added tokens": (BPE, {"added_tokens_decoder": {str(SIZE): {"content": "<|x|>", "rstrip": True, "special": True}}}, True),
}
PAIRS = {
    "gpt2": ({"tokenizer_class": "GPT2Tokenizer", "eos_token": "<|endoftext|>"}, {"added_tokens.json": {"<|x|>": 1}}),
    "gpt2, space in front": ({"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True, "eos_token": "<|endoftext|>"}, {}),
    "qwen2": ({"tokenizer_class": "Qwen2Tokenizer", "eos_token": "<|endoftext|>"}, {"added_tokens.json": {"<|im_start|>": 1, "<|im_end|>": 2}}),
}


def trained(options):
    texts = [line for text in kinds.corpus() for line in text.splitlines() if line.strip()]
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=out, minloglevel=2, vocab_size=SIZE, hard_vocab_limit=False, **options)  # fmt: skip
    return out.getvalue()


def write(path, config, held):
    """Adds the files of a tokenizer to a folder with a model."""
    for old in path.glob("tokenizer*"):
        old.unlink()
    for name, content in {"tokenizer_config.json": config, **held}.items():
        (path / name).write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())


def ids_of(run, tool, file, texts, *options):
    lines = "".join(x.encode().hex() + "\n" for x in texts).encode()
    return [[int(x) for x in line.split("\t")[0].split()] for line in run(tool, file, *options, input=lines).decode().splitlines()]


def lines(n, seed, specials):
    made = Texts(seed, specials)
    made.kinds = [made.special] * len(made.kinds) + made.kinds  # half with control tokens
    return [x.decode() for x in made.make(3 * n) if b"\0" not in x and x == x.decode(errors="replace").encode()][:n]


def compare(name, texts, seen, expected):
    wrong = [x for x in zip(texts, expected, seen, strict=True) if x[1] != x[2]]
    return [f"{name}: {len(wrong)} of {len(texts)} texts have other ids: {wrong[0]!r}"] if wrong else []


def check_models(path, run, arguments):
    found = []
    for name, (options, config, plain) in MODELS.items():
        print("tokenizer.model:", name, flush=True)
        model = trained(options)
        write(path, config, {"tokenizer.model": model})
        run(arguments.tern, "convert", path, path.with_suffix(".gguf"), "--force")
        texts = lines(arguments.texts, arguments.seed, ["<s>", "</s>", "<0x41>", "<unk>", *options.get("user_defined_symbols", [])])
        if plain:
            processor = sentencepiece.SentencePieceProcessor(model_proto=model)
            found += compare(name, texts, ids_of(run, arguments.tool, path.with_suffix(".gguf"), texts), processor.encode(texts))
        else:
            write(path, config | {"tokenizer_class": "PreTrainedTokenizerFast"}, {"tokenizer.model": model})
            fast = transformers.AutoTokenizer.from_pretrained(path)
            expected = fast(texts, add_special_tokens=False).input_ids
            found += compare(name, texts, ids_of(run, arguments.tool, path.with_suffix(".gguf"), texts, "--parse"), expected)
        (path / "tokenizer.model").unlink()
    return found


def check_pairs(path, run, arguments):
    found = []
    model = json.loads(kinds.byte_level(None, []).to_str())["model"]
    merges = "".join((x if isinstance(x, str) else " ".join(x)) + "\n" for x in model["merges"])
    for name, (config, held) in PAIRS.items():
        print("vocab.json:", name, flush=True)
        last = len(model["vocab"])
        held = {k: {token: last + i for token, i in v.items()} for k, v in held.items()}
        write(path, config, held | {"vocab.json": model["vocab"] | {"<|endoftext|>": last}, "merges.txt": ("#version: 0.2\n" + merges).encode()})
        run(arguments.tern, "convert", path, path.with_suffix(".gguf"), "--force")
        slow = transformers.AutoTokenizer.from_pretrained(path)
        texts = lines(arguments.texts, arguments.seed, list(slow.get_added_vocab()))
        found += compare(name, texts, ids_of(run, arguments.tool, path.with_suffix(".gguf"), texts, "--parse"), slow(texts, add_special_tokens=False).input_ids)
        for file in held:
            (path / file).unlink()
    return found


def check(where, run, arguments):
    """Each complaint about such folders."""
    path = where / "older"
    config = transformers.LlamaConfig(vocab_size=SIZE + 50, hidden_size=64, intermediate_size=128, num_hidden_layers=1, num_attention_heads=4)
    transformers.LlamaForCausalLM(config).save_pretrained(path)
    try:
        newer = int(transformers.__version__.split(".")[0]) >= 5  # older ones make other tokenizers of such models
        return (check_models(path, run, arguments) if newer else []) + check_pairs(path, run, arguments)
    except (RuntimeError, ValueError, TypeError, OSError) as error:
        return [f"folders without tokenizer.json: {type(error).__name__}: {error}"]
