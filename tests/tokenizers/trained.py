# SPDX-License-Identifier: Apache-2.0
"""Vocabularies of Unigram and WordPiece to compare tokenizers on: trained here, or made of real ones.

Both kinds come as a tokenizer.json, beside Hugging Face's `tokenizers`, and as a GGUF file. A GGUF file of Unigram
works as SentencePiece does, so `sentencepiece` is the reference there.
"""

import base64
import io
import json
from pathlib import Path

import gguf
import sentencepiece
from texts import Texts
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from vocabularies import CONTROL, NORMAL, UNUSED, Case, finish, json_case, piece_type, reference_case

SPACE = "\u2581"
RULES = ["nmt_nfkc", "nmt_nfkc_cf", "nfkc", "identity"]  # SentencePiece's maps


def corpus():
    """Returns sentences and code: other texts have characters that are not tokens."""
    texts = Texts(1)
    made = [texts.sentences() for _ in range(1500)] + [texts.code() for _ in range(500)]
    return [line for text in made for line in text.splitlines() if line]


# ---- WordPiece ------------------------------------------------------------------------------------


def bert(**flags):
    every = {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
    return every | flags


def words_document(folder, size=2000):
    """Trains a tokenizer.json like that of BERT."""
    reference = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    reference.normalizer = normalizers.BertNormalizer(**bert())
    reference.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    reference.decoder = decoders.WordPiece()
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=size, special_tokens=names, show_progress=False)
    reference.train_from_iterator(corpus(), trainer)
    path = Path(folder) / "words.json"
    reference.save(str(path))
    return json.loads(path.read_text())


def write(folder, name, document):
    path = Path(folder) / f"{name}.json"
    path.write_text(json.dumps(document))
    return path


def words_gguf_case(name, document, folder, **flags):
    """The vocabulary as GGUF files have it: U+2581 begins a word."""
    ids = dict(document["model"]["vocab"]) | {t["content"]: t["id"] for t in document["added_tokens"]}
    tokens, types = [f"[PAD{i}]" for i in range(max(ids.values()) + 1)], [UNUSED] * (max(ids.values()) + 1)
    special = {t["content"] for t in document["added_tokens"]}
    for token, number in ids.items():
        shown = token if token in special else token[2:] if token.startswith("##") else SPACE + token
        tokens[number], types[number] = shown or token, CONTROL if token in special else NORMAL
    out = Path(folder) / f"{name}.gguf"
    writer = gguf.GGUFWriter(out, "bert")
    writer.add_tokenizer_model("bert")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    for key, token in (("unknown", "[UNK]"), ("cls", "[CLS]"), ("seperator", "[SEP]"), ("padding", "[PAD]")):
        writer.add_uint32(f"tokenizer.ggml.{key}_token_id", ids[token])
    for key, value in flags.items():
        writer.add_bool(f"tokenizer.ggml.normalizer.{key}", value)
    finish(writer)
    reference = Tokenizer.from_str(json.dumps(document | {"normalizer": {"type": "BertNormalizer"} | bert(**flags)}))
    reference.no_padding()
    reference.no_truncation()
    return reference_case(f"{name} as GGUF", out, reference, sorted(special))


def words_variants(document):
    """(name, document): each flag and step by itself."""
    flags = [{flag: False} for flag in bert()]
    for rules in [*flags, {"lowercase": False, "strip_accents": True}]:
        yield f"BERT with {rules}", document | {"normalizer": {"type": "BertNormalizer"} | bert(**rules)}
    for name in ("Lowercase", "StripAccents", "Nmt"):
        yield name, document | {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": name}]}}
    yield "other pre-tokenizer", document | {"pre_tokenizer": {"type": "WhitespaceSplit"}}
    yield "short words", document | {"model": document["model"] | {"max_input_chars_per_word": 7}}
    yield "no cleaning", document | {"decoder": {"type": "WordPiece", "prefix": "##", "cleanup": False}}


def words_cases(name, document, folder):
    yield lambda: json_case(f"{name} tokenizer.json", write(folder, name, document))
    yield lambda: words_gguf_case(name, document, folder)
    yield lambda: words_gguf_case(f"{name}, cased", document, folder, lowercase=False)
    yield lambda: words_gguf_case(f"{name}, accents", document, folder, strip_accents=False)


# ---- Unigram --------------------------------------------------------------------------------------


def trained_pieces(rule, size=1500, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus()), model_writer=model, model_type="unigram", vocab_size=size,
        normalization_rule_name=rule, hard_vocab_limit=False, num_threads=1, minloglevel=2, **options,
    )  # fmt: skip
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def fields_of(data):
    """(number, value) of a protocol buffer's message."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}.get(key & 7)
            size = varint() if size is None else size
            value = data[at : at + size]
            at += size
        yield key >> 3, value


def normalizer_of(processor):
    """Returns a model's way of normalizing: (map, prefix, whether spaces are removed)."""
    spec = next((v for k, v in fields_of(processor.serialized_model_proto()) if k == 3), b"")
    values = {2: b"", 3: 1, 4: 1} | dict(fields_of(spec))
    return bytes(values[2]), bool(values[3]), bool(values[4])


def unigram_gguf_case(name, processor, folder):
    """The model in a GGUF file, beside sentencepiece itself: text that is in no control token."""
    every = range(processor.get_piece_size())
    charsmap, prefix, fewer = normalizer_of(processor)
    out = Path(folder) / f"{name}.gguf"
    writer = gguf.GGUFWriter(out, "t5")
    writer.add_tokenizer_model("t5")
    writer.add_token_list([processor.id_to_piece(i) for i in every])
    writer.add_token_scores([processor.get_score(i) for i in every])
    writer.add_token_types([piece_type(processor, i) for i in every])
    writer.add_uint32("tokenizer.ggml.unknown_token_id", processor.unk_id())
    writer.add_bool("tokenizer.ggml.add_space_prefix", prefix)
    writer.add_bool("tokenizer.ggml.remove_extra_whitespaces", fewer)
    if charsmap:
        writer.add_array("tokenizer.ggml.precompiled_charsmap", charsmap)
    finish(writer)
    return Case(name, str(out), lambda texts: processor.encode(texts), None, [], frozenset())


def unigram_document(processor):
    """The model as a tokenizer.json of the kind that XLM-R has."""
    every = range(processor.get_piece_size())
    charsmap, prefix, _ = normalizer_of(processor)
    kinds = [piece_type(processor, i) for i in every]
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    mark = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always" if prefix else "never", "split": True}
    steps = [{"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()}] if charsmap else []
    return {
        "version": "1.0",
        "added_tokens": [{"id": i, "content": processor.id_to_piece(i), **flags, "special": True}
                         for i in every if kinds[i] in (CONTROL, 2)],
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, mark]},
        "post_processor": None,
        "decoder": mark,
        "model": {"type": "Unigram", "unk_id": processor.unk_id(), "byte_fallback": bool(processor.is_byte(3)),
                  "vocab": [[processor.id_to_piece(i), processor.get_score(i)] for i in every]},
    }  # fmt: skip


def unigram_variants(document):
    mark = document["decoder"]
    yield "Metaspace alone", document | {"pre_tokenizer": mark}
    yield "Metaspace, first", document | {"pre_tokenizer": mark | {"prepend_scheme": "first", "split": False}}
    spaces = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
    for name in ("NFKD", "StripAccents", "Lowercase", "Nmt"):
        both = [{"type": name}, *document["normalizer"]["normalizers"], spaces]
        yield f"{name} before the map", document | {"normalizer": {"type": "Sequence", "normalizers": both}}


def unigram_cases(folder, size=1500):
    for rule in RULES:
        yield lambda rule=rule: unigram_gguf_case(f"trained, {rule}", trained_pieces(rule, size), folder)
    for name, options in (
        ("byte tokens", {"byte_fallback": True}),
        ("all spaces", {"remove_extra_whitespaces": False}),
        ("no prefix", {"add_dummy_prefix": False}),
    ):
        yield lambda n=name, o=options: unigram_gguf_case(f"trained, {n}", trained_pieces("nmt_nfkc", size, **o), folder)
    for name, options in (("unknown", {}), ("byte tokens", {"byte_fallback": True})):
        document = unigram_document(trained_pieces("nmt_nfkc", size, **options))
        yield lambda n=name, d=document: json_case(f"trained, {n}, tokenizer.json", write(folder, f"unigram {n}", d))


def model_cases(path, folder):
    """A model of SentencePiece as both kinds of file."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    name = Path(path).stem
    yield lambda: unigram_gguf_case(name, processor, folder)
    yield lambda: json_case(f"{name} tokenizer.json", write(folder, f"unigram {name}", unigram_document(processor)))


def all_cases(folder):
    yield from words_cases("trained words", words_document(folder), folder)
    yield from unigram_cases(folder)
