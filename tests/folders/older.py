# SPDX-License-Identifier: Apache-2.0
"""Folders without a tokenizer.json: models of SentencePiece that are trained here, byte-level BPE as vocab.json and
merges.txt, and words as vocab.txt, beside sentencepiece and beside what transformers makes of the same files."""

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
# XLM-RoBERTa's sentencepiece.bpe.model and BERT's vocab.txt: how it is trained, tokenizer_config.json.
ROBERTA = {
    "xlm-r, no class": (UNIGRAM, {}),
    "xlm-r, mask that swallows spaces": (UNIGRAM, {"tokenizer_class": "XLMRobertaTokenizer", "mask_token": {"__type": "AddedToken", "content": "<mask>", "lstrip": True}}),
    "xlm-r, no space in front": (UNIGRAM, {"tokenizer_class": "XLMRobertaTokenizerFast", "add_prefix_space": False}),
    "xlm-r, no replacements": (UNIGRAM | {"normalization_rule_name": "identity"}, {}),
    "xlm-r, own pieces and bytes": (UNIGRAM | {"user_defined_symbols": ["<start>", "<b>"], "byte_fallback": True}, {}),
}
WORDS = {
    "bert, no class": {},
    "bert, cased": {"tokenizer_class": "BertTokenizer", "do_lower_case": False},
    "bert, accents": {"tokenizer_class": "BertTokenizerFast", "strip_accents": False},
    "bert, cased without accents": {"tokenizer_class": "BertTokenizer", "do_lower_case": False, "strip_accents": True},
    "bert, han": {"tokenizer_class": "DistilBertTokenizer", "tokenize_chinese_chars": False},
    "bert, names": {"tokenizer_class": "BertTokenizer", "unk_token": "[MASK]", "additional_special_tokens": ["<x>"]},
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


def check_encoders(path, run, arguments, files, config, around):
    """Texts with and without the tokens around them, beside transformers; *files* with their contents."""
    write(path, config, files)
    run(arguments.tern, "convert", path, path.with_suffix(".gguf"), "--force")
    reference = transformers.AutoTokenizer.from_pretrained(path)
    texts = lines(arguments.texts, arguments.seed, list(reference.get_added_vocab()))
    options = ["--parse", "--special"] if around else ["--parse"]
    return compare(f"{files.keys()} {config}", texts, ids_of(run, arguments.tool, path.with_suffix(".gguf"), texts, *options),
                   reference(texts, add_special_tokens=around).input_ids)  # fmt: skip


def encoder(where, cls, config, size):
    path = where / f"older_{config.model_type}"
    shape = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 4}
    cls(type(config)(vocab_size=size, **shape)).save_pretrained(path)
    return path


def check_roberta(where, run, arguments):
    found = []
    path = encoder(where, transformers.XLMRobertaModel, transformers.XLMRobertaConfig(), SIZE + 50)
    for name, (options, config) in ROBERTA.items():
        print("sentencepiece.bpe.model:", name, flush=True)
        for around in (False, True):
            found += check_encoders(path, run, arguments, {"sentencepiece.bpe.model": trained(options)}, config, around)
    return found


def check_words(where, run, arguments):
    found = []
    vocabulary = json.loads(kinds.words().to_str())["model"]["vocab"]
    written = "".join(f"{x}\n" for x, _ in sorted(vocabulary.items(), key=lambda item: item[1]))
    path = encoder(where, transformers.BertModel, transformers.BertConfig(), len(vocabulary) + 50)
    for name, config in WORDS.items():
        print("vocab.txt:", name, flush=True)
        for around in (False, True):
            found += check_encoders(path, run, arguments, {"vocab.txt": written.encode()}, config, around)
    return found


def check(where, run, arguments):
    """Each complaint about such folders."""
    path = where / "older"
    config = transformers.LlamaConfig(vocab_size=SIZE + 50, hidden_size=64, intermediate_size=128, num_hidden_layers=1, num_attention_heads=4)
    transformers.LlamaForCausalLM(config).save_pretrained(path)
    try:
        newer = int(transformers.__version__.split(".")[0]) >= 5  # older ones make other tokenizers of such models
        found = check_models(path, run, arguments) + check_roberta(where, run, arguments) if newer else []
        return found + check_pairs(path, run, arguments) + check_words(where, run, arguments)
    except (RuntimeError, ValueError, TypeError, OSError) as error:
        return [f"folders without tokenizer.json: {type(error).__name__}: {error}"]
