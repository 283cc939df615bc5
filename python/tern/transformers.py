# SPDX-License-Identifier: Apache-2.0
"""`generate` as models of transformers have it, computed by tern (docs/python.md). Ids go in and come out as numpy
arrays, lists, or tensors of torch; neither transformers nor torch is needed for it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np

from .model import Model

# What GenerationMixin.generate takes and this has too; everything else that would change an answer is refused.
_SAMPLING = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
_LENGTHS = ("max_new_tokens", "max_length")
_KNOWN = (*_SAMPLING, *_LENGTHS, "do_sample", "eos_token_id", "pad_token_id", "seed", "num_return_sequences")
_WITHOUT_EFFECT = {"use_cache": True, "num_beams": 1, "num_beam_groups": 1, "return_dict_in_generate": False, "output_scores": False,
                   "output_logits": False, "output_attentions": False, "output_hidden_states": False, "synced_gpus": None,
                   "no_repeat_ngram_size": 0, "min_length": 0, "typical_p": 1.0, "length_penalty": 1.0, "early_stopping": False,
                   "encoder_no_repeat_ngram_size": 0, "diversity_penalty": 0.0, "epsilon_cutoff": 0.0, "eta_cutoff": 0.0,
                   "bos_token_id": None, "decoder_start_token_id": None, "tokenizer": None}  # fmt: skip


class GenerativeModel:
    """A model of tern with the `generate` of transformers."""

    def __init__(self, source: Any, **options: Any) -> None:
        """source: a tern.Model, or what tern.Model takes, with its options."""
        self.model = source if isinstance(source, Model) else Model(source, **options)
        size, tokenizer = int(self.model.info["n_vocab"]), self.model.tokenizer
        self._ends = frozenset(number for number in range(min(size, len(tokenizer))) if tokenizer.ends_text(number))

    @classmethod
    def from_pretrained(cls, source: Any, **options: Any) -> GenerativeModel:
        """The same, by the name that transformers has for it."""
        return cls(source, **options)

    def can_generate(self) -> bool:
        """As transformers asks it."""
        return True

    def generate(self, inputs: Any = None, *, input_ids: Any = None, attention_mask: Any = None, generation_config: Any = None,
                 streamer: Any = None, **options: Any) -> Any:  # fmt: skip
        """Ids of prompts and of what follows each, [sequences, longest], ids to pad with where a row ends early. Without
        do_sample each token is the likeliest. Rows are computed together; attention_mask says where padding is."""
        given = input_ids if input_ids is not None else inputs
        if given is None:
            raise ValueError("generate needs input_ids")
        settings = _settings(generation_config, options)
        rows = _rows(given)
        prompts = [_unpadded(row, mask) for row, mask in zip(rows, _masks(attention_mask, rows))]
        if streamer is not None and len(prompts) * (settings.get("num_return_sequences") or 1) != 1:
            raise ValueError("a streamer takes one sequence")
        answers = self._answers(prompts, settings, streamer, rows.shape[1])
        return _like(given, self._joined(np.repeat(rows, len(answers) // len(rows), 0), answers, settings))

    # ---- inside -------------------------------------------------------------------------------
    def _ends_of(self, settings: dict[str, Any]) -> frozenset[int]:
        ends = settings.get("eos_token_id")
        if ends is None:
            return self._ends
        return frozenset(int(end) for end in np.atleast_1d(_array(ends)))

    def _answers(self, prompts: list[list[int]], settings: dict[str, Any], streamer: Any, width: int) -> list[list[int]]:
        """What follows each prompt, its end token included, as transformers has it."""
        options = _options_of(settings, width)
        ends = self._ends_of(settings)
        seed = int(settings.get("seed") or 0)
        with ExitStack() as stack:
            streams = []
            for row, prompt in enumerate(prompts):
                for copy in range(settings.get("num_return_sequences") or 1):
                    drawn = {"seed": seed + len(streams)} if settings.get("do_sample") else {}
                    streams.append(stack.enter_context(self.model.stream(prompt, ignore_end=True, **options, **drawn)))
                    del copy
                if streamer is not None:
                    streamer.put(_like_tensor(prompts[row]))
            answers = [_taken(stream, ends, streamer) for stream in streams]
        if streamer is not None:
            streamer.end()
        return answers

    def _joined(self, rows: Any, answers: list[list[int]], settings: dict[str, Any]) -> Any:
        pad = settings.get("pad_token_id")
        if pad is None:
            pad = min(self._ends_of(settings), default=0)
        longest = max(map(len, answers))
        out = np.full((len(rows), rows.shape[1] + longest), int(pad), np.int64)
        out[:, : rows.shape[1]] = rows
        for row, answer in zip(out, answers):
            row[rows.shape[1] : rows.shape[1] + len(answer)] = answer
        return out


def _settings(config: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Those of a GenerationConfig, overridden by arguments."""
    settings = {name: value for name in _KNOWN if (value := getattr(config, name, None)) is not None}
    for name, value in options.items():
        if name in _KNOWN:
            settings[name] = value
        elif name not in _WITHOUT_EFFECT:
            raise TypeError(f"generate: tern has no {name}; it has {', '.join(_KNOWN)}")
    for name, value in _WITHOUT_EFFECT.items():
        wanted = options.get(name, getattr(config, name, None))
        if wanted is not None and value is not None and wanted != value:
            raise ValueError(f"generate: {name} is {wanted!r}, and tern knows only {value!r}")
    return settings


def _options_of(settings: dict[str, Any], width: int) -> dict[str, Any]:
    """Arguments of tern.Model.stream."""
    most = settings.get("max_new_tokens")
    if most is None:
        most = int(settings.get("max_length") or 20) - width  # 20: the default of transformers
    if most < 1:
        raise ValueError(f"generate: max_length leaves room for {most} tokens: say max_new_tokens")
    options = {name: settings[name] for name in _SAMPLING if settings.get(name) is not None}
    if settings.get("do_sample"):
        options.setdefault("temperature", 1.0)
        options.setdefault("top_k", 50)  # the default of transformers
    else:
        options = {name: options[name] for name in options if name == "repetition_penalty"}
    return {"max_tokens": int(most), **options}


def _taken(stream: Any, ends: frozenset[int], streamer: Any) -> list[int]:
    """Tokens up to the first that ends a text."""
    taken: list[int] = []
    for piece in stream:
        if piece.token < 0:
            continue
        taken.append(piece.token)
        if streamer is not None:
            streamer.put(_like_tensor([piece.token]))
        if piece.token in ends:
            break
    return taken


def _array(ids: Any) -> Any:
    """Ids as numpy has them; a tensor may lie on a device."""
    return np.asarray(ids.detach().cpu().numpy() if hasattr(ids, "detach") else ids)


def _rows(ids: Any) -> Any:
    array = _array(ids)
    if array.ndim != 2 or array.dtype.kind not in "iu" or array.size == 0:
        raise ValueError(f"input_ids must be whole numbers [sequences, tokens], not {array.dtype} {list(array.shape)}")
    return array.astype(np.int64)


def _masks(mask: Any, rows: Any) -> Any:
    if mask is None:
        return np.ones_like(rows)
    array = _array(mask)
    if array.shape != rows.shape:
        raise ValueError(f"attention_mask is {list(array.shape)}, and input_ids are {list(rows.shape)}")
    return array


def _unpadded(row: Any, mask: Any) -> list[int]:
    """A prompt without its padding, which stands before it."""
    ids = row[mask != 0].tolist()
    if not ids or not mask[len(mask) - len(ids) :].all():
        raise ValueError("attention_mask: padding must stand before a prompt (padding_side='left')")
    return ids  # type: ignore[no-any-return]


def _like_tensor(ids: list[int]) -> Any:
    """What streamers of transformers take: a tensor where torch is there."""
    try:
        import torch
    except ImportError:
        return np.array(ids)
    return torch.tensor(ids)


def _like(given: Any, rows: Any) -> Any:
    """Rows in the kind of what was given."""
    if hasattr(given, "detach"):
        import torch

        return torch.from_numpy(rows).to(device=given.device, dtype=given.dtype)
    return rows.tolist() if isinstance(given, (list, tuple)) else rows
