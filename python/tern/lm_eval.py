# SPDX-License-Identifier: Apache-2.0
"""A model of lm-eval that tern computes, called "tern" (docs/python.md). lm-eval knows only models of its own by name,
so its command is started from here, with all that it takes:

    python -m tern.lm_eval run --model tern --model_args pretrained=model.gguf --tasks ...
"""

from __future__ import annotations

from typing import Any, Iterable, Mapping, Sequence

import numpy as np
from lm_eval.api.model import TemplateLM
from lm_eval.api.registry import register_model
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window

from .model import Model

_ROWS = 128  # of logits at once, each as long as the vocabulary
_OF_GENERATION = {"temperature", "top_p", "top_k", "min_p", "seed", "repetition_penalty"}
_KNOWN = _OF_GENERATION | {"until", "max_gen_toks", "max_tokens", "max_new_tokens", "do_sample"}


@register_model("tern")
class TernLM(TemplateLM):  # type: ignore[misc]
    """Log-likelihoods out of the model's logits, and its answers."""

    def __init__(self, pretrained: str | Model, *, max_length: int | None = None, max_gen_toks: int = 256,
                 add_bos_token: bool = False, batch_size: Any = None, max_batch_size: Any = None, device: Any = None,
                 **options: Any) -> None:  # fmt: skip
        """pretrained: what tern.Model takes, or a model; options: those of tern.Model. add_bos_token: texts begin with
        the token for it. What is asked for together is computed together, whatever batch_size says."""
        del batch_size, max_batch_size, device
        super().__init__()
        self.model = pretrained if isinstance(pretrained, Model) else Model(pretrained, **options)
        own = int(self.model.info["n_ctx_train"])
        self.max_length = min(int(max_length), own) if max_length else own
        self.max_gen_toks = int(max_gen_toks)
        self.add_bos_token = add_bos_token
        self._session = self.model.session(context=self.max_length)
        self._seen: list[int] = []

    # ---- tokens -------------------------------------------------------------------------------
    @property
    def eot_token_id(self) -> int:
        """The token that ends a text."""
        eos = self.model.tokenizer.eos
        if eos is None:
            raise ValueError("this model has no token that ends a text")
        return eos

    @property
    def prefix_token_id(self) -> int:
        """What stands before a text that nothing else stands before."""
        bos = self.model.tokenizer.bos
        return self.eot_token_id if bos is None else bos

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **unused: Any) -> list[int]:
        """Ids; names of control tokens in the text are these tokens, as chat templates need it."""
        del unused
        ids = self.model.tokenizer.encode(string, special=False, parse=True)
        begins = self.add_bos_token if add_special_tokens is None else add_special_tokens
        bos = self.model.tokenizer.bos
        return [bos, *ids] if begins and bos is not None and ids[:1] != [bos] else ids

    @property
    def tokenizer_name(self) -> str:
        """Part of the name under which lm-eval keeps requests."""
        return self.model.path.replace("/", "__")

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        """A conversation as the model sees it."""
        return str(self.model.tokenizer.apply_chat_template(
            chat_history, tokenize=False, add_generation_prompt=add_generation_prompt,
            continue_final_message=not add_generation_prompt))  # fmt: skip

    # ---- likelihoods --------------------------------------------------------------------------
    def _forget(self, ids: Sequence[int], most: int) -> int:
        """Rewinds to what these ids share with the last ones; the number of it."""
        same = 0
        while same < min(most, len(self._seen)) and self._seen[same] == ids[same]:
            same += 1
        if same < self._session.position:
            self._session.rewind(same)
        return same

    def _score(self, context: Sequence[int], continuation: Sequence[int]) -> tuple[float, bool]:
        """The sum of ln p of a continuation, and whether each of its tokens is the likeliest."""
        ids = [*context, *continuation][-(self.max_length + 1) :][:-1]
        targets = list(continuation)[-len(ids) :]
        first = len(ids) - len(targets)
        same = self._forget(ids, first)
        self._seen = []  # nobody knows, if what follows fails
        if first > same:
            self._session.eval(ids[same:first])
        total, likeliest = 0.0, True
        for at in range(0, len(targets), _ROWS):
            wanted = np.array(targets[at : at + _ROWS])
            logits = self._session.eval(ids[first + at : first + at + len(wanted)], logits="all")
            assert logits is not None
            rows = logits.astype(np.float64)
            top = rows.max(1)
            chosen = rows[np.arange(len(wanted)), wanted]
            total += float((chosen - top - np.log(np.exp(rows - top[:, None]).sum(1))).sum())
            likeliest &= bool((rows.argmax(1) == wanted).all())
        self._seen = ids
        return total, likeliest

    def _loglikelihood_tokens(self, requests: Iterable[Any], disable_tqdm: bool = False, **unused: Any) -> list[tuple[float, bool]]:
        del disable_tqdm, unused
        answers = []
        for texts, context, continuation in requests:
            answers.append(self._score(context, continuation))
            if texts is not None:
                self.cache_hook.add_partial("loglikelihood", texts, answers[-1])
        return answers

    def loglikelihood_rolling(self, requests: Any, disable_tqdm: bool = False) -> list[float]:
        """ln p of whole texts, in windows of max_length tokens."""
        del disable_tqdm
        answers = []
        for request in requests:
            (text,) = request.args
            windows = get_rolling_token_windows(
                token_list=self.tok_encode(text, add_special_tokens=False), prefix_token=self.prefix_token_id,
                max_seq_len=self.max_length, context_len=1)  # fmt: skip
            answers.append(sum(self._score(*make_disjoint_window(window))[0] for window in windows))
            self.cache_hook.add_partial("loglikelihood_rolling", (text,), answers[-1])
        return answers

    # ---- answers ------------------------------------------------------------------------------
    def _submit(self, context: str, wanted: Mapping[str, Any]) -> Any:
        strange = set(wanted) - _KNOWN
        if strange:
            raise ValueError(f"generate_until: tern has no {', '.join(sorted(strange))}")
        lengths = (wanted.get(name) for name in ("max_gen_toks", "max_new_tokens", "max_tokens"))
        most = int(next((n for n in lengths if n is not None), self.max_gen_toks))
        room = self.max_length - most
        if room < 1:
            raise ValueError(f"generate_until: {most} tokens leave no room for a prompt in {self.max_length}")
        sampling = {name: wanted[name] for name in _OF_GENERATION & set(wanted)}
        if not wanted.get("do_sample", float(sampling.get("temperature") or 0) > 0):
            sampling["temperature"] = 0
        return self.model.submit(self.tok_encode(context)[-room:], max_tokens=most, stop=wanted.get("until"), **sampling)

    def generate_until(self, requests: Any, disable_tqdm: bool = False) -> list[str]:
        """Answers, computed together."""
        del disable_tqdm
        futures = [self._submit(*request.args) for request in requests]
        answers = [future.result().text for future in futures]
        for request, answer in zip(requests, answers):
            self.cache_hook.add_partial("generate_until", request.args, answer)
        return answers


def main() -> None:
    """lm-eval's own command, which finds the model by its name now."""
    from lm_eval.__main__ import cli_evaluate

    cli_evaluate()


if __name__ == "__main__":
    main()
