# SPDX-License-Identifier: Apache-2.0
"""tern convert: the parts of today's folders beside their weights. Chat templates in files, tokenizers as they are, all
ends of a text, heads, scaled angles, norms before matrices (make test-folders compares with transformers itself)."""

import json
import unittest

import common
import gguf_edit
from common import tern, tern_json, tern_text
from convert_case import YARN, ConvertTest

try:
    import hf_folder
    import numpy as np
    from hf_folder import Folder, Stored
except ImportError:
    np = None

ONLINE = {"quant_method": "bitnet", "linear_class": "autobitlinear", "quantization_mode": "online"}
HEADED = {"tie_word_embeddings": True}
WHOLE, ENDS = "tokenizer.huggingface.json", "tokenizer.ggml.eos_token_ids"
MARK = "\u2581"
FLAGS = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


def pieces_of_text(pre_tokenizer, added=(), normalizer=None):
    """A tokenizer.json of SentencePiece's kind: spaces marked, bytes spelled, "<a>" and others cut out."""
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + [MARK, "a", "b", "ab", f"{MARK}a", f"{MARK}ab", MARK * 2]
    merges = [["a", "b"], [MARK, "a"], [MARK, "ab"], [MARK, MARK]]
    plain = [{"content": x, "special": True, **FLAGS} for x in tokens[:3]]
    every = plain + [{"content": "<a>", "special": True, **FLAGS}] + [{"special": True, **FLAGS, **x} for x in added]
    steps = [{"type": "Replace", "pattern": {"String": MARK}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]
    model = {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True, "merges": merges}
    for at, token in enumerate(every):
        token["id"] = at if at < 3 else len(tokens) + at - 3
    return {
        "added_tokens": every,
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "decoder": {"type": "Sequence", "decoders": steps},
        "model": model | {"vocab": {t: i for i, t in enumerate(tokens)}},
    }


def metaspace(scheme):
    return {"type": "Metaspace", "replacement": MARK, "prepend_scheme": scheme, "split": False}


@unittest.skipUnless(np, "needs numpy and gguf")
class ConvertFolders(ConvertTest):
    # ---- the model ----

    def bytes_of(self, model):
        """The converted file without its name."""
        file = gguf_edit.read(self.convert(model)[0])
        del file["general.name"]
        return file.to_bytes()

    def pair(self, kind, first, second, **both):
        """Says whether folders with two configurations and the same weights become the same file."""
        models = [Folder(self.dir / "pair", kind, **{"tie_word_embeddings": False, **both}) for _ in range(2)]
        for model, change in zip(models, (first, second), strict=True):
            model.config |= change
            for key in [k for k, v in model.config.items() if v is None]:
                del model.config[key]
        return self.bytes_of(models[0]) == self.bytes_of(models[1])

    def test_another_head_than_the_embedding(self):
        """tie_word_embeddings does not tie matrices that the folder has twice, with different weights."""
        for kind in ("LlamaForCausalLM", "Qwen3ForCausalLM", "Gemma3ForCausalLM"):
            with self.subTest(kind):
                self.assertTrue(self.pair(kind, HEADED, {}))
        self.assertTrue(self.pair("Gemma3ForCausalLM", {"tie_word_embeddings": None}, {}))
        model = Folder(self.dir / "own", tie_word_embeddings=False)
        model.tensors["lm_head.weight"] = model.tensors["model.embed_tokens.weight"]
        model.config |= HEADED
        self.assertFalse(any(t.name == "output.weight" for t in gguf_edit.read(self.agree(model)[0]).tensors))

    def test_scaling_added_by_hand(self):
        """As in transformers, a rope_scaling that is not empty replaces rope_parameters and their base."""
        newer = {"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}, "rope_theta": None}
        by_hand = newer | {"rope_scaling": YARN | {"rope_theta": 7e5}}
        self.assertTrue(self.pair("Qwen3ForCausalLM", by_hand, {"rope_scaling": YARN, "rope_theta": 7e5}))
        lost = newer | {"rope_scaling": YARN}
        self.assertTrue(self.pair("Qwen3ForCausalLM", lost, {"rope_scaling": YARN, "rope_theta": 10000.0}))
        for nothing in (None, {}):
            self.assertTrue(self.pair("Qwen3ForCausalLM", newer | {"rope_scaling": nothing}, {"rope_theta": 5e5}))
        full = {"rope_type": "default", "rope_theta": 1e6}
        kinds = {"full_attention": full, "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}}
        older = {"rope_scaling": {"rope_type": "linear", "factor": 8.0}}
        self.assertTrue(self.pair("Gemma3ForCausalLM", older | {"rope_parameters": kinds, "rope_theta": None}, older | {"rope_theta": 1e6}))

    def normed(self, **config):
        shape = {"hidden_size": 128, "intermediate_size": 256, "head_dim": 32, "rms_norm_eps": 1e-6}
        asked = ONLINE | {"use_rms_norm": True}
        return Folder(self.dir / "normed", "Qwen3ForCausalLM", weights="master", quantization_config=asked | config, **shape)

    def test_norms_before_matrices(self):
        """use_rms_norm: each matrix's norm becomes a tensor; without it, or elsewhere, the folder is refused."""
        model = self.normed()
        self.refused(model, "self_attn.q_proj.rms_norm.weight", "missing")
        for name in [n for n in model.tensors if n.endswith("_proj.weight")]:
            width = model.tensors[name].shape[1]
            model.tensors[name.replace(".weight", ".rms_norm.weight")] = Stored(1 + np.arange(width) / 64, "F32")
        file = gguf_edit.read(self.convert(model)[0])
        for name, width in (("attn_q", 128), ("attn_output", 128), ("ffn_gate", 128), ("ffn_down", 256)):
            seen = np.frombuffer(file.tensor(f"blk.1.{name}_norm_in.weight").data, "<f4")[:width]
            self.assertEqual(seen.tolist(), (1 + np.arange(width) / 64).tolist())
        with_norms, model.tensors = model.tensors, {k: v for k, v in model.tensors.items() if "rms_norm" not in k}
        model.config["quantization_config"] = ONLINE
        self.convert(model)
        model.tensors = with_norms
        self.refused(model, "rms_norm.weight", "no place")
        model.config["quantization_config"] = ONLINE | {"use_rms_norm": True, "rms_norm_eps": 1e-5}
        self.refused(model, "rms_norm_eps", "not the model's own")
        shape = {"hidden_size": 128, "intermediate_size": 256, "weights": "master"}
        llama = Folder(self.dir / "llama", quantization_config=ONLINE | {"use_rms_norm": True}, **shape)
        self.refused(llama, "use_rms_norm", "not supported in this class")

    def test_small_things(self):
        model = Folder(self.dir / "small", is_bitnet_config=True)
        for name in ("F16", "f16", "Q8_0"):
            result = tern("convert", model.write(), self.dir / "out.gguf", "--force", "--type", name, "--embedding-type", name)
            self.assertEqual((result.returncode, result.stderr.count(b"\n")), (0, 1), result.stderr)
            self.assertIn(b"no tokenizer.json", result.stderr)
        result = tern("convert", model.path, self.dir / "out.gguf", "--force", "--type", "Q8_X")
        self.assert_one_line_error(result, 2, ["--type", "Q8_X"])

    def test_biases_without_a_place(self):
        """Zeros are left out; anything else is refused by its name."""
        model = Folder(self.dir / "biased", attention_bias=True)
        expected = self.bytes_of(model)
        name = "model.layers.1.self_attn.o_proj.bias"
        model.tensors[name] = Stored(np.zeros(64))
        self.assertEqual(self.bytes_of(model), expected)
        model.tensors[name] = Stored(np.eye(1, 64, 63)[0])
        self.refused(model, name, "no place")

    # ---- the tokenizer ----

    def texts(self, document, vocab_size=None, **files):
        size = vocab_size or max(t["id"] for t in document["added_tokens"]) + 3
        folder = Folder(self.dir / f"texts{len(list(self.dir.iterdir()))}", vocab_size=size).write()
        for name, content in {"tokenizer.json": document, **files}.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
        return folder

    def converted(self, folder):
        out = self.dir / "texts.gguf"
        result = tern("convert", folder, out, "--force")
        self.assertEqual(result.returncode, 0, result.stderr)
        return out

    def same_ids(self, document, *texts):
        """tern's reading of a tokenizer.json is compared with the reference by e2e_tokenizer_parity."""
        folder = self.texts(document)
        out = self.converted(folder)
        for text in texts:
            ids = [tern_text("tokenize", *where, "-p", text, "--special") for where in (("--tokenizer", folder / "tokenizer.json"), ("-m", out))]
            self.assertEqual(*ids, text)
        return out

    def test_spaces_in_front(self):
        """Tests where a mark is put in front of the text after a control token, and where one is there already."""
        for scheme in ("first", "always", "never"):
            with self.subTest(scheme):
                out = self.same_ids(pieces_of_text(metaspace(scheme)), "ab<a>ab", " ab", "  ab", "<a>", "<a> ab", "", "<s>a</s> b")
                self.assertIn(WHOLE, gguf_edit.read(out))
                seen = tern_text("tokenize", "-m", out, "-p", "ab<a>", "--special").split()
                self.assertEqual(seen[-1], "266")
                self.assertEqual(seen[0], {"first": "264", "always": "264", "never": "262"}[scheme])
                after = tern_text("tokenize", "-m", out, "-p", "<a>ab", "--special").split()
                self.assertEqual(after, ["266", {"first": "262", "always": "264", "never": "262"}[scheme]])

    def test_flags_of_added_tokens(self):
        added = [{"content": "<r>", "rstrip": True}, {"content": "<l>", "lstrip": True}, {"content": "<w>", "single_word": True}]
        texts = ("a<r>  b", "a  <l>b", "a<w>b <w> b", "<r> <l> <w>", "ab<r>\n\n<l>")
        self.same_ids(pieces_of_text(metaspace("first"), added), *texts)

    def test_words_beside_a_token(self):
        """A raised digit or a fraction is not a part of a word here; letters and digits of any script are."""
        out = self.same_ids(pieces_of_text(metaspace("never"), [{"content": "<w>", "single_word": True}]), "a")
        for before, alone in (("\u00b2", True), ("\u00bd", True), ("\u2460", True), ("\u0967", False), ("a", False), ("_", False)):
            ids = tern_text("tokenize", "-m", out, "-p", before + "<w>", "--special").split()
            self.assertEqual("267" in ids, alone, before)

    def test_normal_forms(self):
        out = self.same_ids(pieces_of_text(metaspace("always"), normalizer={"type": "NFKC"}), "\uff41\uff42", "\ufb01 ab", "a\u00a0b")
        self.assertEqual(tern_text("tokenize", "-m", out, "-p", "\uff41\uff42"), tern_text("tokenize", "-m", out, "-p", "ab"))

    def test_overlapping_tokens(self):
        """The left-most of two tokens that share a letter counts in a folder, the longer one in GGUF."""
        document = hf_folder.byte_tokenizer([["a", "b"]], {"<x>": True, ">>yy": True})
        out = self.same_ids(document, "a<x>>yy", "<x>", ">>yy")
        self.assertIn(WHOLE, gguf_edit.read(out))

    def test_byte_level_needs_no_more(self):
        document = hf_folder.byte_tokenizer([["a", "b"]], {"<|x|>": True, "<y>": False})
        file = gguf_edit.read(self.same_ids(document, "ab<|x|>ab <y>", "\u00e9"))
        self.assertNotIn(WHOLE, file)
        self.assertEqual(file.text("tokenizer.ggml.model"), "gpt2")
        repeated = hf_folder.byte_tokenizer([["a", "b"], ["b", "a"], ["a", "b"]], {"<|x|>": True})
        repeated["model"]["vocab"] = {t: i for i, t in enumerate(hf_folder.byte_alphabet() + ["ab", "ba"])}
        repeated["added_tokens"][0]["id"] = 258
        self.assertIn(WHOLE, gguf_edit.read(self.same_ids(repeated, "aba")))
        short = hf_folder.byte_tokenizer([["a", "b"]], {"<|x|>": True})
        del short["model"]["vocab"]["~"]
        self.assertIn(WHOLE, gguf_edit.read(self.same_ids(short, "a~b", "ab~")))

    def test_files_of_others(self):
        """The key decides, unless --pre is asked for or a step of it is not known; it must fit the list of tokens."""
        out = self.same_ids(pieces_of_text(metaspace("never")), "ab")
        file = gguf_edit.read(out)
        held = json.loads(file.text(WHOLE))
        unknown = held | {"pre_tokenizer": {"type": "UnicodeScripts"}}
        other = held | {"model": held["model"] | {"vocab": held["model"]["vocab"] | {"b": 261, "a": 260 + 1, "ab": 262}}}

        def seen(document):
            file[WHOLE] = gguf_edit.string(document if isinstance(document, str) else json.dumps(document))
            out.write_bytes(file.to_bytes())
            return tern("tokenize", "-m", out, "-p", "<a>ab", "--special", "--json")

        self.assertEqual(json.loads(seen(held).stdout)["tokens"], [266, 262])
        self.assertEqual(json.loads(seen(held | {"pre_tokenizer": metaspace("always")}).stdout)["tokens"], [266, 264])
        self.assertEqual(seen(unknown).returncode, 0)
        file["tokenizer.ggml.model"] = gguf_edit.string("huggingface")
        self.assert_one_line_error(seen(unknown), contains=["UnicodeScripts"])
        self.assert_one_line_error(seen("{"), contains=["texts.gguf"])
        self.assertNotEqual(seen(other).returncode, 0)
        renamed = json.loads(json.dumps(held).replace('"b": 261', '"c": 261').replace('["a", "b"]', '["a", "c"]').replace('"ab"', '"ac"').replace(f'{MARK}ab', f'{MARK}ac'))
        self.assert_one_line_error(seen(renamed), contains=["token 261 is 'c'", "list of tokens"])

    def test_all_ends(self):
        document = hf_folder.byte_tokenizer([["a", "b"]], {f"<{i}>": True for i in range(8)})
        ends = [258, 259, 260, 261, 263]
        files = {"tokenizer_config.json": {"eos_token": "<1>"}, "generation_config.json": {"eos_token_id": ends}}
        out = self.converted(self.texts(document, **files))
        file = gguf_edit.read(out)
        self.assertEqual(file.numbers(ENDS), ends)
        self.assertEqual([file.number(f"tokenizer.ggml.{x}_token_id") for x in ("eos", "eot", "eom")], ends[:3])
        self.assertEqual(file.number("tokenizer.ggml.bos_token_id"), 0xFFFFFFFF)  # without a key it would be token 11

    # ---- chat templates ----

    def shown(self, out, tools=None, *options):
        talk = json.dumps({"messages": [{"role": "user", "content": "hi"}]} | ({"tools": tools} if tools else {}))
        return tern_json("chat-template", "-m", out, "--messages", "-", *options, stdin=talk.encode())["text"]

    def test_templates_in_files(self):
        """chat_template.jinja and files of names count in place of tokenizer_config.json, with its own list too."""
        document = hf_folder.byte_tokenizer([["a", "b"]], {"<e>": True})
        named = [{"name": "default", "template": "old"}, {"name": "tool_use", "template": "old tools"}, {"name": "rag", "template": "r"}]
        old = {"tokenizer_config.json": {"chat_template": named}}
        out = self.converted(self.texts(document, **old))
        self.assertEqual([self.shown(out), self.shown(out, [TOOL])], ["old", "old tools"])
        self.assertEqual(gguf_edit.read(out).texts("tokenizer.chat_templates"), ["tool_use", "rag"])
        newer = old | {"chat_template.jinja": "new {{ messages[0].content }}"}
        out = self.converted(self.texts(document, **newer))
        self.assertEqual([self.shown(out), self.shown(out, [TOOL])], ["new hi", "new hi"])
        self.assertNotIn("tokenizer.chat_templates", gguf_edit.read(out))
        for name in ("additional_chat_templates", "chat_templates"):
            every = newer | {f"{name}/tool_use.jinja": "tools {{ tools | length }}"}
            folder = self.texts(document, **every)
            out = self.converted(folder)
            self.assertEqual([self.shown(out), self.shown(out, [TOOL])], ["new hi", "tools 1"])
            self.assertEqual(gguf_edit.read(out).text("tokenizer.chat_template.tool_use"), "tools {{ tools | length }}")
            beside = tern_json("chat-template", "-m", out, "--tokenizer", folder / "tokenizer.json", "--messages", "-", stdin=b'[{"role": "user", "content": "x"}]')
            self.assertEqual(beside["text"], "new x")

    def test_names_of_templates_that_cannot_end_a_key(self):
        """They are left out, so that no two keys are equal and each can be typed."""
        named = [{"name": name, "template": name} for name in ("a\0b", "a\0c", "", "x y", "tool_use", "n" * 65, "n" * 64)]
        out = self.converted(self.texts(hf_folder.byte_tokenizer([["a", "b"]], {"<e>": True}), **{"tokenizer_config.json": {"chat_template": named}}))
        self.assertEqual(gguf_edit.read(out).texts("tokenizer.chat_templates"), ["tool_use", "n" * 64])

    def test_templates_of_a_folder_come_by_name(self):
        """Whatever the order in which a file system lists them: a folder makes one file."""
        names = ["rag", "b", "tool_use", "a-2", "z", "Z", "a", "0"]
        files = {f"chat_templates/{name}.jinja": name for name in names}
        out = self.converted(self.texts(hf_folder.byte_tokenizer([["a", "b"]], {"<e>": True}), **files))
        self.assertEqual(gguf_edit.read(out).texts("tokenizer.chat_templates"), ["0", "Z", "a-2", "a", "b", "rag", "tool_use", "z"])

    def test_template_of_a_file(self):
        out = self.converted(self.texts(hf_folder.byte_tokenizer([["a", "b"]], {"<e>": True})))
        path, bad = self.dir / "own.jinja", self.dir / "bad.jinja"
        path.write_text("mine: {{ messages[0].content }}\r\n{{ tools | length if tools }}")
        bad.write_text("{% for %}")
        self.assertEqual(self.shown(out, None, "--chat-template", path), "mine: hi\n")
        self.assertEqual(self.shown(out, [TOOL], "--chat-template", path), "mine: hi\n1")
        self.assertEqual(tern_json("inspect", out, "--chat-template", path)["tokenizer"]["chat_format"], "template")
        for wrong, words in ((bad, ["bad.jinja"]), (self.dir / "none.jinja", ["none.jinja", "No such file"])):
            result = tern("chat-template", "-m", out, "--messages", "-", "--chat-template", wrong, stdin=b'[{"role": "user", "content": "x"}]')
            self.assert_one_line_error(result, contains=words)


class Files(common.FolderTest):
    """GGUF files by others, made of the small model."""

    def test_a_list_of_ends(self):
        """Each token of the list ends a text, whatever type of integers the list has."""
        story = tern_json("run", "-m", common.small_model(), "-p", "Once upon a time", "-n", 20)["tokens"]
        file = gguf_edit.read(common.small_model())
        path = self.dir / "ends.gguf"
        for values in (gguf_edit.i32s([0, story[7]]), (gguf_edit.ARRAY, u64s([0, story[7]]))):
            file[ENDS] = values
            path.write_bytes(file.to_bytes())
            answer = tern_json("run", "-m", path, "-p", "Once upon a time", "-n", 20)
            self.assertEqual(answer["tokens"][: story.index(story[7])], story[: story.index(story[7])])
            self.assertNotEqual(answer["stop"], "length")
        for values in (gguf_edit.i32s([0, 1 << 24]), gguf_edit.i32s([-1]), gguf_edit.u32(3), gguf_edit.strings(["a"])):
            file[ENDS] = values
            path.write_bytes(file.to_bytes())
            self.assert_one_line_error(tern("run", "-m", path, "-p", "x"), contains=[ENDS])

    def test_harmless_oddities(self):
        """Integers as scores of merges, and paddings that are called alike."""
        file = gguf_edit.read(common.small_model())
        path = self.dir / "odd.gguf"
        n = len(file.texts("tokenizer.ggml.tokens"))
        expected = tern_text("tokenize", "-m", common.small_model(), "-p", "Once upon a time")
        file["tokenizer.ggml.scores"] = gguf_edit.i32s(range(n))
        path.write_bytes(file.to_bytes())
        self.assertEqual(tern_text("tokenize", "-m", path, "-p", "Once upon a time"), expected)
        kinds, tokens = file.numbers("tokenizer.ggml.token_type"), file.texts("tokenizer.ggml.tokens")
        end = file.number("tokenizer.ggml.eos_token_id")
        last = [i for i in range(n) if kinds[i] == 1 and i != end][-2:]
        for kind, fine in ((3, True), (5, True), (1, False)):
            own, types = list(tokens), list(kinds)
            for i in last:
                own[i], types[i] = "[PAD]", kind
            merges = [m for m in file.texts("tokenizer.ggml.merges") if not {tokens[i] for i in last} & {*m.split(" "), m.replace(" ", "")}]
            file["tokenizer.ggml.tokens"], file["tokenizer.ggml.token_type"] = gguf_edit.strings(own), gguf_edit.i32s(types)
            file["tokenizer.ggml.merges"] = gguf_edit.strings(merges)
            path.write_bytes(file.to_bytes())
            result = tern("tokenize", "-m", path, "-p", "Once upon a time")
            self.assertEqual(result.returncode == 0, fine, result.stderr)
            file["tokenizer.ggml.tokens"], file["tokenizer.ggml.token_type"] = gguf_edit.strings(tokens), gguf_edit.i32s(kinds)


def u64s(values):
    return gguf_edit.struct.pack(f"<IQ{len(values)}Q", gguf_edit.U64, len(values), *values)


if __name__ == "__main__":
    common.main()
