# SPDX-License-Identifier: Apache-2.0
"""tern's tokenizers give the ids of the reference ones: the quick part of tests/tokenizers/parity.py."""

import json
import os
import sys
import tempfile
from pathlib import Path

import common
import suite

suite.need("gguf", "sentencepiece", "tokenizers")
sys.path.insert(0, str(common.ROOT / "tests" / "tokenizers"))

import parity  # noqa: E402

TEXTS = 700  # for each vocabulary
STEP_TEXTS = 150  # for each variant of a tokenizer.json


class Parity(common.TernTest):
    @classmethod
    def setUpClass(cls):
        cls.tool = Path(common.command()[0]).parent / "tests" / "tokenize_tool"

    def test_vocabularies(self):
        """Vocabularies are the small model's, those that get-model has, and a folder of tokenizer.json files."""
        with tempfile.TemporaryDirectory() as folder:
            source = os.environ.get("TERN_TEST_TOKENIZERS")
            names = ["smollm2", "mistral-vocabulary", "llama3-vocabulary"]
            for make in parity.all_cases(folder, source, names):
                case = make()
                with self.subTest(case=case.name):
                    compared, wrong, lost, _ = parity.compare(self.tool, case, TEXTS, 5)
                    self.assertEqual((wrong, lost), (0, 0))
                    self.assertGreater(compared, 0)

    def test_steps(self):
        """Each step and flag of a tokenizer.json by itself; ids are compared."""
        import variants
        import vocabularies

        documents = list(variants.of_bytes(vocabularies.gguf_document(common.small_model())))
        with tempfile.TemporaryDirectory() as folder:
            model = parity.fetch("mistral-vocabulary")
            if model:
                path = vocabularies.sentencepiece_json_case("text", model, folder).path
                documents += variants.of_text(json.loads(Path(path).read_text()))
            else:
                print("mistral-vocabulary cannot be fetched: its part is left out")
            for name, document in documents:
                with self.subTest(name=name):
                    path = Path(folder) / "variant.json"
                    path.write_text(json.dumps(document))
                    case = vocabularies.json_case(name, path)
                    _, wrong, _, _ = parity.compare(self.tool, case, STEP_TEXTS, 11, lambda text: None)
                    self.assertEqual(wrong, 0)

    def test_steps_of_embedding_models(self):
        """Steps and flags of Unigram and WordPiece; ids are compared."""
        import trained
        import vocabularies

        with tempfile.TemporaryDirectory() as folder:
            documents = [*trained.words_variants(trained.words_document(folder))]
            documents += trained.unigram_variants(trained.unigram_document(trained.trained_pieces("nmt_nfkc")))
            for name, document in documents:
                with self.subTest(name=name):
                    case = vocabularies.json_case(name, trained.write(folder, "variant", document))
                    _, wrong, lost, _ = parity.compare(self.tool, case, STEP_TEXTS, 11)
                    self.assertEqual((wrong, lost), (0, 0))

    def test_every_character(self):
        """Every character belongs to the same class as in BERT: nothing, a space, punctuation or a part of a word."""
        import trained
        import vocabularies

        with tempfile.TemporaryDirectory() as folder:
            document = trained.words_document(folder, size=50)
            document["model"]["vocab"] = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "x": 5, "##x": 6}
            case = vocabularies.json_case("x", trained.write(folder, "x", document))
            parts = [f"x{chr(c)}x" for c in [*range(0xD800), *range(0xE000, 0x30000), *range(0xE0000, 0xE0200)]]
            texts = [" ".join(parts[i : i + 64]) for i in range(0, len(parts), 64)]
            got = parity.run_tool(self.tool, case.path, [text.encode() for text in texts])
            wrong = [a for a, (ids, _), b in zip(texts, got, case.encode(texts), strict=True) if ids != b]
            self.assertEqual(wrong, [])


if __name__ == "__main__":
    common.main()
