# SPDX-License-Identifier: Apache-2.0
"""The Python package answers what the program answers, alone and among others, whole and in streams."""

import asyncio
import gc
import hashlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import weakref
from pathlib import Path

import package
import suite

tern = package.begin()

import adapter_file  # noqa: E402
import numpy as np  # noqa: E402  (after package.begin, which says where it is missing)

QUESTION = "Q: What is 17+25? A:"
STORY = {"prompt": "Once upon a time", "max_tokens": 24, "temperature": 0.8, "seed": 7}
SCHEMA = {"type": "object", "properties": {"sum": {"type": "integer"}, "word": {"enum": ["a", "b"]}}, "required": ["sum", "word"]}


def program(*args):
    """What the program prints with --json."""
    return json.loads(package.run(tern, *args, "--json"))


class WithModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = package.open_small(tern)

    @classmethod
    def tearDownClass(cls):
        cls.model.close()


class Texts(WithModel):
    def test_answers_are_those_of_the_program(self):
        for flags, options in ((["-m", package.SMALL, "-p", QUESTION, "-n", "8"], {"prompt": QUESTION, "max_tokens": 8}),
                               (["-m", package.SMALL, "-p", STORY["prompt"], "-n", "24", "--temp", "0.8", "--seed", "7"], STORY)):  # fmt: skip
            said, answer = program("run", *flags), self.model.generate(**options)
            self.assertEqual((answer.text, answer.tokens, answer.digest), (said["text"], said["tokens"], said["digest"]))

    def test_adapters(self):
        """Adapters by lora=, with the answers of the program."""
        file = adapter_file.Adapter(package.SMALL, size=0.2).write(Path(tempfile.gettempdir()) / f"tern-lora-{os.getpid()}.gguf")
        self.addCleanup(file.unlink)
        digests = {self.model.generate(QUESTION, max_tokens=8).digest}
        for lora, said in (([file], str(file)), ([(file, 0.5)], f"{file}=0.5")):
            with package.open_small(tern, lora=lora) as model:
                answer = model.generate(QUESTION, max_tokens=8)
            expected = program("run", "-m", package.SMALL, "-p", QUESTION, "-n", "8", "--lora", said)
            self.assertEqual((answer.tokens, answer.digest), (expected["tokens"], expected["digest"]))
            digests.add(answer.digest)
        self.assertEqual(len(digests), 3)
        self.assertRaises(tern.TernError, package.open_small, tern, lora=["/nowhere"])

    def test_draft_model(self):
        """draft_model= guesses, and answers stay the same; a file that is not there is refused."""
        expected = self.model.generate(STORY["prompt"], max_tokens=40)
        with package.open_small(tern, draft_model=package.SMALL) as model:
            with tern.Engine(model) as engine:
                answers = [asked.generate(STORY["prompt"], max_tokens=40) for asked in (model, engine)]
        self.assertEqual([answer.digest for answer in answers], [expected.digest] * 2)
        self.assertRaises(tern.TernError, package.open_small, tern, draft_model="/nowhere")

    def test_logits_have_the_digest_of_the_program(self):
        tokens = self.model.tokenizer.encode(QUESTION)
        said = package.run(tern, "logits", "-m", package.SMALL, "-p", QUESTION, "--all", "--sha256")
        every = self.model.logits(tokens, all=True)
        self.assertEqual(tern.digest(every), said.strip())
        self.assertEqual(hashlib.sha256(every.tobytes()).hexdigest(), tern.digest(every))
        np.testing.assert_array_equal(self.model.logits(QUESTION), every[-1])

    def test_a_stream_is_the_whole(self):
        whole = self.model.generate(**STORY)
        with self.model.stream(**STORY) as stream:
            pieces = list(stream)
        with self.model.stream(**STORY, stop=whole.text[-2:] + "x") as held:
            self.assertEqual("".join(piece.text for piece in held), whole.text)
        self.assertEqual("".join(piece.text for piece in pieces), whole.text)
        self.assertEqual([piece.token for piece in pieces if piece.token >= 0], whole.tokens)
        self.assertEqual((stream.answer.digest, stream.answer.end), (whole.digest, whole.end))

    def test_stops(self):
        whole = self.model.generate(**STORY)
        stopped = self.model.generate(**STORY, stop=[whole.text[12:16]])
        self.assertEqual((stopped.text, stopped.end), (whole.text[:12], "stop"))
        short = self.model.generate(**STORY, stop_tokens=[whole.tokens[5]])
        self.assertEqual((short.tokens, short.end), (whole.tokens[: whole.tokens.index(whole.tokens[5])], "stop"))
        self.assertEqual(self.model.generate(QUESTION, max_tokens=8).end, "end")
        self.assertEqual(len(self.model.generate(QUESTION, max_tokens=30, ignore_end=True).tokens), 30)

    def test_a_token_can_be_forbidden(self):
        first = self.model.generate(QUESTION, max_tokens=1).tokens[0]
        self.assertNotEqual(self.model.generate(QUESTION, max_tokens=1, logit_bias={first: -1000.0}).tokens[0], first)

    def test_logprobs(self):
        answer = self.model.generate(QUESTION, max_tokens=2, logprobs=3)
        logits = self.model.logits(QUESTION).astype(np.float64)
        shares = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
        self.assertEqual([e.token for e in answer.pieces[0].likeliest], list(np.argsort(-logits)[:3]))
        np.testing.assert_allclose(answer.pieces[0].logprob, shares[answer.tokens[0]], atol=1e-4)

    def test_an_answer_has_its_form(self):
        for n in range(8):
            answer = self.model.generate(f"{n} as JSON: ", schema=SCHEMA, temperature=1.5, seed=n, max_tokens=300)
            self.assertEqual(set(answer.value), {"sum", "word"})
            self.assertIsInstance(answer.value["sum"], int)
        self.assertRegex(self.model.generate("Say: ", pattern="[xyz]{3}!").text, "^[xyz]{3}!$")
        self.assertIn(self.model.generate("Say: ", grammar='root ::= "yes" | "no"').text, ("yes", "no"))
        cut = self.model.generate("JSON: ", schema=SCHEMA, max_tokens=2)
        with self.assertRaises(tern.TernError):
            print(cut.value)

    def test_a_class_gives_objects(self):
        class Form:  # the two methods of pydantic's models that are used
            @staticmethod
            def model_json_schema():
                return SCHEMA

            @staticmethod
            def model_validate_json(text):
                return ("read", json.loads(text))

        self.assertEqual(self.model.generate("JSON: ", schema=Form, max_tokens=300).value[0], "read")
        self.assertEqual(set(self.model.chat("JSON", schema=Form, max_tokens=300).value[1]), {"sum", "word"})


class Talks(WithModel):
    def test_a_reply_and_its_stream(self):
        reply = self.model.chat("What is 2+2?", max_tokens=8)
        self.assertEqual((reply.text, reply.end, reply["object"]), ("4", "stop", "chat.completion"))
        events = list(self.model.chat([{"role": "user", "content": "What is 2+2?"}], max_tokens=8, stream=True))
        self.assertEqual("".join(e["choices"][0]["delta"].get("content") or "" for e in events), reply.text)
        self.assertEqual(events[-1]["tern"]["digest"], [reply.digest])
        tokens = self.model.tokenizer.apply_chat_template([{"role": "user", "content": "What is 2+2?"}])
        self.assertEqual(self.model.generate(tokens, max_tokens=8).digest, reply.digest)

    def test_tools(self):
        tool = {"type": "function", "function": {"name": "weather", "parameters": {
            "type": "object", "properties": {"city": {"type": "string", "maxLength": 5}}, "required": ["city"]}}}  # fmt: skip
        reply = self.model.chat("How is it?", tools=[tool], tool_choice="required", max_tokens=200)
        self.assertEqual((reply.end, reply.tool_calls[0]["function"]["name"]), ("tool_calls", "weather"))
        self.assertEqual(set(json.loads(reply.tool_calls[0]["function"]["arguments"])), {"city"})

    def test_completions(self):
        reply = self.model.complete([QUESTION, "Q: What is 2+2? A:"], max_tokens=8)
        self.assertEqual([choice["text"].strip() for choice in reply["choices"]], ["42", "4"])

    def test_refusals_name_the_field(self):
        for fields, param in (({"temperature": "hot"}, "temperature"), ({"tools": 3}, "tools"), ({"top_p": 7}, "top_p")):
            with self.assertRaises(tern.RequestError) as caught:
                self.model.chat("Hi", **fields)
            self.assertEqual(caught.exception.param, param)
        with self.assertRaises(tern.RequestError) as caught:
            self.model.chat("word " * 4000)
        self.assertEqual(caught.exception.status, "ERR_CONTEXT")

    def test_fields_without_effect_are_told(self):
        with self.assertWarnsRegex(UserWarning, "nonsense"):
            self.model.chat("Hi", nonsense=3, max_tokens=1)

    def test_llama(self):
        from tern.llama_cpp import Llama

        llm = Llama(str(package.SMALL), n_ctx=256, n_gpu_layers=-1, verbose=False, seed=1)
        said = llm(QUESTION, max_tokens=8, temperature=0, stop=["\n"], echo=False)
        self.assertEqual((said["choices"][0]["text"].strip(), said["object"]), ("42", "text_completion"))
        parts = llm.create_chat_completion([{"role": "user", "content": "What is 2+2?"}], max_tokens=4, temperature=0, stream=True)
        self.assertEqual("".join(part["choices"][0]["delta"].get("content") or "" for part in parts), "4")
        form = {"type": "json_object", "schema": SCHEMA}
        reply = llm.create_chat_completion([{"role": "user", "content": "x"}], response_format=form, max_tokens=200)
        self.assertEqual(set(json.loads(reply["choices"][0]["message"]["content"])), {"sum", "word"})
        self.assertEqual(llm.detokenize(llm.tokenize(b"Hello there")), b"Hello there")
        self.assertEqual((llm.n_ctx(), llm.n_vocab(), len(llm.embed("a"))), (256, 1024, 256))
        self.assertEqual(len(list(zip(llm.generate(llm.tokenize(QUESTION.encode()), temp=0), range(2)))), 2)
        with self.assertRaises(NotImplementedError):
            llm("x", mirostat_mode=2)


class Together(WithModel):
    def test_futures_equal_solo_answers(self):
        prompts = [(f"Q: What is {n}+{n}? A:", n) for n in range(12)]
        alone = [self.model.generate(p, max_tokens=8, temperature=0.9, seed=n) for p, n in prompts]
        with tern.Engine(self.model, context=128, parallel=5, threads=2) as engine:
            futures = [engine.submit(p, max_tokens=8, temperature=0.9, seed=n) for p, n in prompts]
            together = [future.result() for future in futures]
        self.assertEqual([(a.tokens, a.digest, a.text) for a in together], [(a.tokens, a.digest, a.text) for a in alone])

    def test_threads(self):
        said = [None] * 8

        def ask(n):
            said[n] = self.model.generate(f"Q: What is {n}+1? A:", max_tokens=8).text.strip()

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(said, [self.model.generate(f"Q: What is {n}+1? A:", max_tokens=8).text.strip() for n in range(8)])

    def test_coroutines(self):
        async def ask():
            answers = await asyncio.gather(*(self.model.engine.agenerate(**STORY) for _ in range(3)))
            pieces = [piece.text async for piece in self.model.engine.astream(**STORY)]
            task = asyncio.create_task(self.model.engine.agenerate("Once", ignore_end=True))
            await asyncio.sleep(0)
            task.cancel()
            return [a.text for a in answers] + ["".join(pieces)]

        whole = self.model.generate(**STORY)
        self.assertEqual(asyncio.run(ask()), [whole.text] * 4)
        self.until_idle()

    def until_idle(self):
        suite.until(lambda: self.model.engine.state()["running"] + self.model.engine.state()["waiting"] == 0)

    def test_a_stream_that_is_closed_ends_its_answer(self):
        """It waits for so many others that it cannot have ended before."""
        with tern.Engine(self.model, parallel=1) as engine:
            for _ in range(60):
                engine.submit("Once", ignore_end=True)
            stream = engine.stream("Once", ignore_end=True)
            stream.close()
            self.assertEqual(stream.answer.end, "cancelled")

    def test_a_model_goes_with_its_last_owner(self):
        model = package.open_small(tern)
        model.generate(QUESTION, max_tokens=2)
        model.logits(QUESTION)
        gone = weakref.ref(model)
        gc.disable()
        try:
            del model
            self.assertIsNone(gone())
        finally:
            gc.enable()

    def test_what_nobody_wants_ends(self):
        stream = self.model.stream("Once", ignore_end=True, max_tokens=400)
        next(stream)
        del stream
        gc.collect()
        self.until_idle()
        future = self.model.submit("Once", ignore_end=True)
        self.assertTrue(future.cancel())
        self.until_idle()
        events = self.model.chat("Tell me a story", stream=True, ignore_eos=True)
        next(events)
        events.close()
        self.until_idle()
        self.assertEqual(self.model.generate(QUESTION, max_tokens=8).text.strip(), "42")

    def test_an_engine_that_closes_tells(self):
        engine = tern.Engine(self.model)
        futures = [engine.submit("Once", ignore_end=True) for _ in range(40)]
        engine.close()
        kinds = {type(future.exception()) for future in futures}
        self.assertLessEqual(kinds, {tern.ClosedError, type(None)})
        self.assertIn(tern.ClosedError, kinds)
        with self.assertRaises(tern.ClosedError):
            engine.generate("x")


class Rest(WithModel):
    def test_sessions(self):
        tokens = self.model.tokenizer.encode(QUESTION)
        every = self.model.logits(tokens, all=True)
        with self.model.session(context=64) as session, tempfile.TemporaryDirectory() as folder:
            np.testing.assert_array_equal(session.eval(tokens[:5], logits="all"), every[:5])
            session.save(Path(folder, "s"))
            np.testing.assert_array_equal(session.eval(tokens[5:], logits="last"), every[-1])
            session.restore(Path(folder, "s"))
            self.assertEqual((session.position, session.tokens), (5, tokens[:5]))
            session.rewind(2)
            session.eval(tokens[2:])
            np.testing.assert_array_equal(session.logits(), every[-1])

    def test_vectors(self):
        vectors = self.model.embed(["a cat", "a dog"], pooling="mean")
        said = json.loads(package.run(tern, "embed", "-m", package.SMALL, "-p", "a cat", "--pooling", "mean"))
        np.testing.assert_array_equal(vectors[0], np.array(said["embedding"], np.float32))
        np.testing.assert_allclose((vectors**2).sum(axis=1), 1, rtol=1e-5)
        np.testing.assert_array_equal(self.model.embed("a dog", pooling="mean"), vectors[1])

    def test_tokenizers(self):
        own, other = self.model.tokenizer, tern.Tokenizer(package.SMALL)
        text = "Hello \N{SNOWMAN} there"
        self.assertEqual(other.decode(own.encode(text), skip_special=True), text)
        self.assertEqual(own.encode(text, special=False), program("tokenize", "-m", package.SMALL, "-p", text)["tokens"])
        said = own.apply_chat_template([{"role": "user", "content": "Hi"}], tokenize=False)
        self.assertEqual(own.encode(said, special=False, parse=True), own.apply_chat_template([{"role": "user", "content": "Hi"}]))

    def test_kernels_give_the_same_bits(self):
        rng = np.random.default_rng(3)
        weights, x = rng.standard_normal((48, 512)).astype(np.float32), rng.standard_normal((3, 512)).astype(np.float32)
        for name in ("i2_s", "tq2_0", "q4_0", "q8_0", "q4_k", "f16"):
            file = tern.kernels.quantize(weights, name)
            matrix = tern.kernels.pack(file)
            scalar = tern.kernels.matmul(matrix, x, isa="scalar")
            np.testing.assert_array_equal(tern.kernels.matmul(matrix, x), scalar, name)
            np.testing.assert_array_equal(tern.kernels.matmul(matrix, x[1]), scalar[1], name)
            wanted = x @ tern.kernels.dequantize(file).T
            np.testing.assert_allclose(scalar, wanted, atol=0.03 * np.abs(wanted).max(), err_msg=name)
        self.assertEqual(tern.kernels.unpack(tern.kernels.pack(tern.kernels.quantize(weights, "q4_0"))).data.tobytes(),
                         tern.kernels.quantize(weights, "q4_0").data.tobytes())  # fmt: skip

    def test_kernels_of_rows(self):
        x = np.linspace(-2, 3, 100, dtype=np.float32)
        np.testing.assert_allclose(tern.kernels.softmax(x), np.exp(x) / np.exp(x).sum(), rtol=1e-5)
        np.testing.assert_allclose(tern.kernels.gate(x, x), x * x / (1 + np.exp(-x)), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(tern.kernels.add(x, x), 2 * x)
        np.testing.assert_allclose(tern.kernels.rmsnorm(x, x), x * x / np.sqrt((x * x).mean() + 1e-5), rtol=1e-5)
        np.testing.assert_allclose(tern.kernels.layernorm(x, np.ones(100)).mean(), 0, atol=1e-6)
        turned = tern.kernels.rope(x, np.zeros(50), np.ones(50))
        np.testing.assert_allclose(turned, np.concatenate([-x[50:], x[:50]]))

    def test_kernels_do_not_copy(self):
        out = np.zeros(32, np.float32)
        matrix = tern.kernels.pack(tern.kernels.quantize(np.ones((32, 64), np.float32), "f32"))
        self.assertIs(tern.kernels.matmul(matrix, np.ones(64, np.float32), out=out), out)
        np.testing.assert_array_equal(out, np.full(32, 64, np.float32))

    def test_receipts(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "receipt.json")
            answer = self.model.generate(**STORY)
            self.assertEqual(answer.receipt(path)["schema_version"], json.loads(path.read_text())["schema_version"])
            tern.verify(path, replay=True)
            path.write_text(path.read_text().replace(str(answer.tokens[3]), str(answer.tokens[3] + 1)))
            with self.assertRaises(tern.TernError):
                tern.verify(path)

    def test_versions(self):
        self.assertIn(tern.__version__, package.run(tern, "--version"))


class Processes(WithModel):
    def test_a_forked_child_is_told(self):
        self.model.generate(QUESTION, max_tokens=1)
        reader, writer = multiprocessing.get_context("fork").Pipe(False)

        def child():
            said = []
            for use in (lambda: self.model.generate("x"), lambda: self.model.logits([1]), lambda: len(self.model.tokenizer)):
                try:
                    use()
                    said.append("done")
                except tern.ForkError:
                    said.append("told")
            said.append(package.open_small(tern).generate(QUESTION, max_tokens=4).text.strip())
            writer.send(said)

        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        self.assertEqual(reader.recv(), ["told"] * 3 + ["42"])
        process.join()
        self.assertEqual(process.exitcode, 0)
        self.assertEqual(self.model.generate(QUESTION, max_tokens=4).text.strip(), "42")

    def test_a_signal_ends_an_answer(self):
        """The model is asked for more and more, so that it answers when the signal comes."""
        source = (f"import sys; sys.path[:0] = {sys.path!r}\nimport tern\nm = tern.Model({str(package.SMALL)!r}, cache=None, tune=False)\n"
                  "print('begun', flush=True)\ntry:\n    while True: m.generate('Once', ignore_end=True)\n"
                  "except KeyboardInterrupt:\n    print('ended', m.generate('Q: What is 2+2? A:', max_tokens=4).text)\n")  # fmt: skip
        with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True) as process:
            self.assertEqual(process.stdout.readline(), "begun\n")
            time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.stdout.read().split(), ["ended", "4"])
        self.assertEqual(process.returncode, 0)

    def test_the_program_ends_while_it_answers(self):
        source = (f"import sys; sys.path[:0] = {sys.path!r}\nimport tern\nm = tern.Model({str(package.SMALL)!r}, cache=None, tune=False)\n"
                  "s = m.stream('Once', ignore_end=True)\nnext(s)\nm.submit('Once', ignore_end=True)\nprint('over')\n")  # fmt: skip
        done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("over\n", "", 0))

    def test_numpy_comes_later(self):
        source = f"import sys; sys.path[:0] = {sys.path!r}\nimport tern\nprint('numpy' in sys.modules, 'asyncio' in sys.modules)"
        done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "False False\n")


if __name__ == "__main__":
    suite.main()
