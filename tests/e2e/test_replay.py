# SPDX-License-Identifier: Apache-2.0
"""tern replay: the answers of a recording are asked again; what differs is what the logits of both models say."""

import json
import math
import shutil
import struct

import common
import gguf_edit
from common import tern, tern_json, tern_text
from serving import Server
from test_record import CUT, lines_of

QUICK = ("--no-cache", "--no-tune", "--threads", 1)
ASKED = (
    ("/v1/completions", {"prompt": "Once upon", "max_tokens": 24, "temperature": 0}),
    ("/v1/completions", {"prompt": "Once upon", "max_tokens": 12, "temperature": 1.1, "seed": 3, "n": 2, "frequency_penalty": 0.4,
                         "logit_bias": {"448": -2}}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "What is 2+2?"}], "max_tokens": 12, "temperature": 0.8, "seed": 9,
                              "response_format": {"type": "json_object"}}),
    ("/v1/messages", {"messages": [{"role": "user", "content": "What is 2+2?"}], "max_tokens": 9, "temperature": 0}),
    ("/completion", {"prompt": "The sky", "n_predict": 16, "stop": [" the", " a"], "temperature": 0}),
)


class Replay(common.FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.dir / "models").mkdir()
        cls.model = cls.dir / "models" / "mine.gguf"  # neither beside the recording nor here
        shutil.copyfile(common.small_model(), cls.model)
        cls.other = cls.dir / "other.gguf"
        tern_text("quantize", cls.model, cls.other, "--type", "tq2_0", "--embedding-type", "q4_0")
        cls.path = cls.dir / "answers.jsonl"
        with Server("-m", cls.model, "--record", cls.path, *QUICK) as server:
            for path, fields in ASKED:
                reply = server.post(path, **fields)
                assert reply.status == 200, reply.body
            server.stop()
        cls.lines = lines_of(cls.path)

    def replay(self, *options, status=0, model=None, path=None):
        """The document of --json; the exit status is as it must be."""
        result = tern("replay", path or self.path, "-m", model or self.model, "--threads", 1, "--json", *options)
        self.assertEqual(result.returncode, status, result.stderr.decode())
        return json.loads(result.stdout) if status < 2 else result

    def write(self, name, lines):
        path = self.dir / name
        path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
        return path

    def rows(self, model, ids):
        """The logits after each of the ids."""
        path = self.dir / "logits.f32"
        tern_text("logits", "-m", model, "--tokens", common.comma(ids), "--all", "--output", path, "--force", "--no-cache", "--no-tune")
        return list(struct.iter_unpack(f"<{path.stat().st_size // len(ids) // 4}f", path.read_bytes()))

    def test_equal_on_every_instruction_set(self):
        for isa in common.runnable_isas():
            with self.subTest(isa=isa):
                answers = self.replay("--isa", isa, "--batch", 3)
                self.assertEqual((answers["equal"], answers["differ"]), (6, 0))
                self.assertEqual([a["tokens"] for a in answers["answers"]], [line["output"]["tokens"] for line in self.lines])
                for i, answer in enumerate(answers["answers"]):
                    self.assertEqual((answer["answer"], answer["line"], answer["same_model"], answer["difference"]), (i, i + 1, True, None))

    def test_another_quantization(self):
        """The first token that differs, and both models' log-probabilities there, are those of the logits."""
        answers = self.replay("--recorded-model", self.model, model=self.other, status=1)
        differing = [answer for answer in answers["answers"] if not answer["equal"]]
        self.assertEqual(answers["differ"], len(differing))
        self.assertIn(0, [answer["answer"] for answer in differing])
        for answer in differing:
            line, found = self.lines[answer["answer"]], answer["difference"]
            self.assertFalse(answer["same_model"])
            self.assertEqual(found["kind"], "token")
            prompt, output = line["prompt"]["ids"], line["output"]["ids"]
            self.assertEqual(found["recorded"]["token"], output[found["at"]])
            for model, name in ((self.model, "logprob_recorded_model"), (self.other, "logprob")):
                rows = self.rows(model, prompt + output)[len(prompt) - 1:]
                row = rows[found["at"]]
                total = max(row) + math.log(sum(math.exp(x - max(row)) for x in row))
                for which in ("recorded", "now"):
                    self.assertAlmostEqual(found[which][name], row[found[which]["token"]] - total, delta=1e-5)
                if line["sampler"]["temperature"] == 0:  # the likeliest token is picked
                    picked = [max(range(len(row)), key=row.__getitem__) for row in rows]
                    first = next((i for i, token in enumerate(output) if picked[i] != token), len(output))
                    self.assertEqual(first, found["at"] if model == self.other else len(output))
                    self.assertEqual(picked[found["at"]], found["now" if model == self.other else "recorded"]["token"])

    def test_without_the_recorded_model(self):
        answers = self.replay(model=self.other, status=1)
        found = answers["answers"][0]["difference"]
        self.assertIsNone(found["recorded"]["logprob_recorded_model"])
        self.assertLess(found["recorded"]["logprob"], found["now"]["logprob"])
        lines = tern("replay", self.path, "-m", self.other, "--threads", 1, "--answer", 0).stdout.decode().splitlines()
        self.assertRegex(lines[1], rf"^ +0 +24 +{found['at']}  {found['recorded']['token']} '.+' +{found['now']['token']} '.+' +- +-\d\.\d{{4}}$")
        self.assertEqual(lines[2:], ["1 answers: 0 equal, 1 differ"])

    def test_other_states_and_ends(self):
        """Equal tokens are not all."""
        changed = [json.loads(json.dumps(line)) for line in self.lines[:2]]
        changed[0]["output"]["hidden_sha256"] = "0" * 64
        changed[1]["output"]["max_tokens"] = 99
        changed[1]["output"]["stop"] = "end"
        answers = self.replay(path=self.write("changed.jsonl", changed), status=1)["answers"]
        self.assertEqual(answers[0]["difference"] | {"now": ""}, {"kind": "hidden_states", "at": 0, "recorded": "0" * 64, "now": ""})
        self.assertEqual((answers[1]["difference"]["kind"], answers[1]["difference"]["recorded"]), ("token", None))

    def test_a_branch(self):
        """Without anything in place of a token the answer is the recorded one, from everywhere; else another one follows."""
        for number in (0, 2, 3):
            line = self.lines[number]["output"]
            for kept in (0, 1, line["tokens"] // 2, line["tokens"]):
                branch = self.replay("--answer", number, "--from", kept)
                self.assertEqual((branch["tokens"], branch["digest"], branch["same_tokens"]), (line["ids"], line["hidden_sha256"], line["tokens"]))
        line = self.lines[0]
        begun = line["output"]["ids"][:4] + [560]
        branch = self.replay("--answer", 0, "--from", 4, "--with-token", 560)
        run = tern_json("run", "-m", self.model, "--tokens", common.comma(line["prompt"]["ids"] + begun), "-n", 24 - 5, *QUICK)
        self.assertEqual(branch["tokens"], begun + run["tokens"])
        self.assertEqual(branch["same_tokens"], 4)
        words = tern_json("tokenize", "-m", self.model, " there was")["tokens"]
        words = [token["id"] if isinstance(token, dict) else token for token in words]
        branch = self.replay("--answer", 0, "--from", 4, "--with", " there was")
        self.assertEqual(branch["tokens"][:4 + len(words)], line["output"]["ids"][:4] + words)
        text = tern("replay", self.path, "-m", self.model, "--threads", 1, "--answer", 0, "--from", 4, "--with", " there was").stdout.decode()
        self.assertEqual(text, branch["text"] + "\n")
        self.assertIn(" there was", text)

    def test_a_branch_keeps_the_form(self):
        """A token that the form does not allow is refused."""
        result = self.replay("--answer", 3, "--from", 0, "--with", "Once", status=2)
        self.assert_one_line_error(result, 2)

    def test_wrong_usage_and_broken_files(self):
        for words, said in ((("--from", 1), "--from needs --answer"), (("--answer", 0, "--with", "x"), "need --from"),
                            (("--answer", 0, "--from", 1, "--with", "x", "--with-token", 1), "exclude each other"),
                            (("--answer", 6), "--answer 6: the recording has 6 answers"),
                            (("--answer", 0, "--from", 25), "--from 25: the answer has 24 tokens"),
                            (("--answer", 0, "--from", 1, "--with-token", 1024), "there are 1024 tokens")):
            self.assert_one_line_error(self.replay(*words, status=2), 2, [said])
        broken = json.loads(json.dumps(self.lines[0]))
        broken["output"]["ids"][0] += 1
        for lines, said in (([broken], "line 1: output.ids_sha256"), (self.lines[:1] + [{"a": 1}], 'line 2: $schema: is ""'), ([], "it has no answers")):
            self.assert_one_line_error(self.replay(path=self.write("broken.jsonl", lines), status=2), 2, [said])
        self.assert_one_line_error(self.replay(model=self.dir / "none.gguf", status=2), 2, ["none.gguf: ", "No such file"])
        self.assert_one_line_error(tern("replay", self.path), 2, ["the model mine.gguf is neither beside it nor here"])

    def test_another_vocabulary(self):
        self.assert_one_line_error(self.replay(model=common.synth("llama-tiny-f16", self.dir), status=2), 2)
        file = gguf_edit.read(self.model)  # the same size, but two of its tokens stand for each other's text
        texts = file.texts("tokenizer.ggml.tokens")
        one, other = [*dict.fromkeys(self.lines[0]["output"]["ids"][:9])][:2]
        texts[one], texts[other] = texts[other], texts[one]
        file["tokenizer.ggml.tokens"] = gguf_edit.strings(texts)
        path = self.dir / "swapped.gguf"
        path.write_bytes(file.to_bytes())
        self.assert_one_line_error(self.replay(model=path, status=2), 2, ["its tokens stand for other texts than the recorded ones"])

    def test_the_end_of_a_recording(self):
        """A part of a line is left out, and the line that says that the file was full is no answer."""
        path = self.write("ends.jsonl", [*self.lines[3:4], {"$schema": "urn:tern:record-end:1.0.0", "reason": "limit", "limit": 9}])
        with path.open("ab") as file:
            file.write(CUT)
        result = tern("replay", path, "-m", self.model, "--threads", 1)
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        self.assertIn(b"line 2: the recording was full", result.stderr)
        self.assertIn(b"line 3 is a part and is left out", result.stderr)
        self.assertIn(b"1 answers: 1 equal, 0 differ", result.stdout)


if __name__ == "__main__":
    common.main()
