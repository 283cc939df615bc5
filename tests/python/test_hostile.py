# SPDX-License-Identifier: Apache-2.0
"""Calls that make no sense end with an exception, never with the process: 300 of them, and then the model still answers."""

import itertools
import threading
import unittest

import package
import suite

tern = package.begin()

import numpy as np  # noqa: E402

STRANGE = [None, True, -1, 2**64, 10**40, 1.5, float("nan"), float("inf"), "x", "\0", "\ud800", b"\xff", [], [None], [-1], [2**40], ["a"],
           {}, {"a": object()}, object(), np.zeros(3), np.array("x"), np.zeros((0, 4)), lambda: 0, range(5)]  # fmt: skip
# What is allowed to come out: exceptions that say what is wrong.
GOOD = (tern.TernError, TypeError, ValueError, OverflowError, AttributeError)
MEANT = {  # values above that these arguments may have
    "prompt": ("x", b"\xff", "\0", range(5)), "max_tokens": (None, 2**0), "seed": (None,), "temperature": (None, 1.5, 2**64, 10**40),
    "logit_bias": (None, {}, []), "stop": (None, "x", "\0", [], ["a"]), "stop_tokens": (None, [], range(5)), "schema": (None, True, {}),
    "logprobs": (None,), "timeout": (None, 1.5, 2**64, 10**40), "top_k": (None,), "tokens": ("x", "\0", b"\xff", range(5)),
}  # fmt: skip


def is_meant(name, value):
    return any(value is other or (type(value) is type(other) and isinstance(value, (str, bytes, list, dict, range, float, int)) and value == other)
               for other in MEANT.get(name, ()))  # fmt: skip


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = package.open_small(tern)
        cls.called = 0

    def refuses(self, function, *args, **kwargs):
        type(self).called += 1
        with self.assertRaises(GOOD) as caught:
            function(*args, **kwargs)
        self.assertTrue(str(caught.exception))

    def tearDown(self):
        answer = package.open_small(tern).generate("Q: What is 2+2? A:", max_tokens=4)
        self.assertEqual(answer.text.strip(), "4")

    def test_arguments_of_generate(self):
        for name in ("prompt", "max_tokens", "seed", "temperature", "top_k", "logit_bias", "stop", "stop_tokens", "schema", "logprobs", "timeout"):
            for value in STRANGE:
                if not is_meant(name, value):
                    with self.subTest(name=name, value=repr(value)[:40]):
                        self.refuses(self.model.generate, **{"prompt": "x", "max_tokens": 2, name: value})
        self.assertGreater(self.called, 200)

    def test_tokens(self):
        for value in STRANGE:
            if not is_meant("tokens", value):
                with self.subTest(value=repr(value)[:40]):
                    self.refuses(self.model.logits, value)
        for value in STRANGE:
            if not isinstance(value, (list, range)) or value in ([None], ["a"], [2**40]):
                with self.subTest(value=repr(value)[:40]):
                    self.refuses(self.model.tokenizer.decode, value)
        self.refuses(self.model.tokenizer.encode, 3)
        self.refuses(self.model.tokenizer.encode, "\ud800")
        self.refuses(self.model.tokenizer.token, 1024)
        self.refuses(self.model.logits, [1024])
        self.refuses(self.model.logits, [1] * 5000)

    def test_conversations(self):
        for messages in (None, 3, b"x", {}, [3], [{}], [{"role": "user"}], [{"role": 3, "content": "x"}], [{"role": "user", "content": object()}]):
            with self.subTest(messages=repr(messages)):
                self.refuses(self.model.chat, messages, max_tokens=2)
        for messages in (None, 3, "x", {"role": "user"}, [3], [{"role": "user", "content": 3}], [{"role": "us\0er", "content": "x"}], []):
            with self.subTest(messages=repr(messages)):
                self.refuses(self.model.tokenizer.apply_chat_template, messages)
        self.refuses(self.model.chat, "x", temperature=float("nan"))
        self.refuses(self.model.chat, "x", schema={"type": 7})
        self.refuses(self.model.chat, "x", tools=[{"type": "function"}])

    def test_models_and_files(self):
        for source in (None, 3, "", "/", "/dev/null", "\0", "/no/such/file.gguf", b"\xff.gguf", __file__, object()):
            with self.subTest(source=repr(source)):
                self.refuses(tern.Model, source)
        self.refuses(tern.Model, package.SMALL, isa="z80")
        self.refuses(tern.Model, package.SMALL, kv="q4_0", cache=None)
        self.refuses(tern.Model, package.SMALL, nonsense=1)
        self.refuses(tern.Model, package.SMALL, threads=-1)
        self.refuses(tern.Tokenizer, "/no/such/tokenizer.json")
        self.refuses(tern.Engine, self.model, context=2**40)
        self.refuses(tern.Engine, self.model, parallel=0)
        self.refuses(tern.Engine, 3)
        self.refuses(tern.verify, "/no/such/receipt")

    def test_what_is_closed(self):
        model = package.open_small(tern)
        session, tokenizer, engine = model.session(context=64), model.tokenizer, model.engine
        model.generate("x", max_tokens=1)
        session.close()
        model.close()
        model.close()
        for use in (model.generate, model.stream, model.submit, model.chat, model.complete, model.logits, model.embed, tokenizer.encode,
                    engine.generate, session.eval):  # fmt: skip
            with self.subTest(use=use.__name__):
                self.refuses(use, "x")
        for use in (session.logits, engine.state, model.session, model.kernels, lambda: len(tokenizer), lambda: session.position):
            self.refuses(use)

    def test_a_session_belongs_to_one_thread(self):
        said = []
        with self.model.session(context=512) as session:
            begin = threading.Barrier(2)

            def use():
                begin.wait()
                for _ in range(200):
                    try:
                        session._eval_at(0, list(range(60)), False)
                    except tern.BusyError as error:
                        said.append(str(error))

            threads = [threading.Thread(target=use) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertTrue(said)
        self.assertIn("another thread", said[0])

    def test_kernels(self):
        k = tern.kernels
        weights = np.ones((16, 64), np.float32)
        file = k.quantize(weights, "q4_0")
        matrix = k.pack(file)
        for value in STRANGE:
            with self.subTest(value=repr(value)[:40]):
                self.refuses(k.matmul, matrix, value)
                self.refuses(k.matmul, value, np.ones(64))
                self.refuses(k.quantize, value, "q4_0")
                self.refuses(k.pack, value)
                self.refuses(k.quantize, weights, value)
        for change in ({"rows": 17}, {"cols": 2**40}, {"data": file.data[:5]}, {"format": "q9"}, {"layout": "x"}, {"data": file.data[1:]}):
            fields = {**matrix.__dict__, **change}
            with self.subTest(change=list(change)):
                self.refuses(k.matmul, k.Matrix(**fields), np.ones(fields["cols"] if fields["cols"] < 99 else 64))
        self.refuses(k.matmul, matrix, np.ones(64), kernel="tern_rmsnorm_scalar")
        self.refuses(k.matmul, matrix, np.ones(64), kernel=k.select("gemv", "f16"))
        self.refuses(k.matmul, matrix, np.ones(64), out=np.ones(16))
        self.refuses(k.matmul, matrix, np.ones(64), out=np.ones(3, np.float32))
        self.refuses(k.rmsnorm, np.ones(3), np.ones(4))
        self.refuses(k.rope, np.ones(3), np.ones(1), np.ones(1))
        self.refuses(k.quantize, np.full((16, 64), np.nan), "q4_0")
        self.refuses(k.quantize, np.ones((16, 63)), "q4_0")
        for row in itertools.islice((row for row in k.rows() if not row.runnable and row.op == "softmax"), 3):
            self.refuses(k.softmax, np.ones(4), kernel=row)


if __name__ == "__main__":
    suite.main()
