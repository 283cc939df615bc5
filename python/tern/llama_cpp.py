# SPDX-License-Identifier: Apache-2.0
"""Llama, with the methods of llama-cpp-python's class of that name. Arguments that could change an answer and that tern
does not have are refused by name; those that only change speed or memory are taken and have no effect."""

from __future__ import annotations

import os
from typing import Any, Callable, Iterator, Mapping, Sequence

from .model import Model

__all__ = ["Llama"]

# Their names there, and here.
_RENAMED = {"repeat_penalty": "repetition_penalty", "grammar_text": "grammar"}
# Of speed, memory and printing alone.
_HARMLESS = {
    "n_gpu_layers", "split_mode", "main_gpu", "tensor_split", "use_mmap", "use_mlock", "n_batch", "n_ubatch", "n_threads_batch",
    "offload_kqv", "flash_attn", "verbose", "last_n_tokens_size", "logits_all", "no_perf", "numa", "embedding", "op_offload",
    "swa_full", "kv_unified",
}  # fmt: skip
# The values by which callers say "off": these change nothing.
_OFF = {"typical_p": 1.0, "tfs_z": 1.0, "mirostat_mode": 0, "xtc_probability": 0.0, "suffix": None, "rope_freq_base": 0.0,
        "rope_freq_scale": 0.0, "rope_scaling_type": None, "lora_path": None, "draft_model": None, "vocab_only": False,
        "logits_processor": None, "stopping_criteria": None, "mirostat_tau": None, "mirostat_eta": None, "lora_base": None,
        "chat_handler": None, "kv_overrides": None, "top_n_sigma": None, "functions": None, "function_call": None}  # fmt: skip
_IGNORED_WHEN_OFF = {"mirostat_tau", "mirostat_eta"}


def _refuse(arguments: Mapping[str, Any], of: str) -> None:
    """Raises for what tern cannot do."""
    for name, value in arguments.items():
        if name in _HARMLESS or name in _IGNORED_WHEN_OFF or (name in _OFF and value == _OFF[name]) or value is None:
            continue
        raise NotImplementedError(f"{of}: {name}={value!r} is not done by tern")


class Llama:
    """A model with the interface of llama-cpp-python. `model` is the one of tern."""

    def __init__(self, model_path: str, *, n_ctx: int = 512, n_threads: int | None = None, seed: int = 0xFFFFFFFF,
                 chat_format: str | None = None, **others: Any) -> None:  # fmt: skip
        """seed: 4294967295 draws one, as there; answers then differ from run to run."""
        _refuse(others, "Llama")
        options: dict[str, Any] = {"chat_format": chat_format} if chat_format else {}
        self.model = Model(os.path.expanduser(model_path), context=n_ctx, threads=n_threads or 0, **options)
        self.model_path = self.model.path
        self._seed = seed

    @classmethod
    def from_pretrained(cls, repo_id: str, filename: str | None = None, **options: Any) -> Llama:
        """A model of the Hugging Face Hub; filename is a file of the repository or a part of its name."""
        part = (filename or "").strip("*")
        return cls(f"{repo_id}:{part}" if part else repo_id, **options)

    # ---- text -------------------------------------------------------------------------------
    def __call__(self, prompt: str | list[int], **options: Any) -> Any:
        """create_completion."""
        return self.create_completion(prompt, **options)

    def create_completion(self, prompt: str | list[int], *, max_tokens: int | None = 16, temperature: float = 0.8, top_p: float = 0.95,
                          top_k: int = 40, min_p: float = 0.05, **options: Any) -> Any:  # fmt: skip
        """A completion; with stream=True an iterator of its parts."""
        fields = {"max_tokens": max_tokens, "temperature": temperature, "top_p": top_p, "top_k": top_k, "min_p": min_p, **options}
        return self.model.complete(prompt, **self._fields(fields, "create_completion"))

    def create_chat_completion(self, messages: Sequence[Mapping[str, Any]], *, temperature: float = 0.2, top_p: float = 0.95,
                               top_k: int = 40, min_p: float = 0.05, **options: Any) -> Any:  # fmt: skip
        """A reply in a conversation; with stream=True an iterator of its parts."""
        fields = {"temperature": temperature, "top_p": top_p, "top_k": top_k, "min_p": min_p, **options}
        form = fields.get("response_format")
        if isinstance(form, Mapping) and form.get("type") == "json_object" and "schema" in form:
            fields["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": form["schema"]}}
        return self.model.chat(list(messages), **self._fields(fields, "create_chat_completion"))

    def _fields(self, options: Mapping[str, Any], of: str) -> dict[str, Any]:
        """Fields of OpenAI's interface, as tern reads them."""
        _refuse({name: value for name, value in options.items() if name in _OFF or name in _HARMLESS}, of)
        fields = {_RENAMED.get(name, name): value for name, value in options.items() if name not in _OFF and name not in _HARMLESS}
        fields.pop("model", None)
        if fields.get("max_tokens") is not None and fields["max_tokens"] <= 0:
            fields["max_tokens"] = None
        if hasattr(fields.get("grammar"), "_grammar"):  # a LlamaGrammar
            fields["grammar"] = fields["grammar"]._grammar
        if fields.get("top_k") is not None:
            fields["top_k"] = max(0, fields["top_k"])
        if fields.get("seed") is None:
            fields["seed"] = self._seed
        if fields["seed"] in (0xFFFFFFFF, -1):
            fields["seed"] = int.from_bytes(os.urandom(4), "little")
        return fields

    # ---- tokens -----------------------------------------------------------------------------
    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = False) -> list[int]:
        """Ids of a text; special: control tokens in it are recognised."""
        if not isinstance(text, bytes):
            raise TypeError(f"text must be bytes, not {type(text).__name__}")
        return self.model.tokenizer.encode(text, special=add_bos, parse=special)

    def detokenize(self, tokens: Sequence[int], prev_tokens: Sequence[int] | None = None, special: bool = False) -> bytes:
        """The text of ids."""
        del prev_tokens
        return self.model.tokenizer.decode_bytes(tokens, skip_special=not special)

    def token_bos(self) -> int:
        """-1: none."""
        bos = self.model.tokenizer.bos
        return -1 if bos is None else bos

    def token_eos(self) -> int:
        """-1: none."""
        eos = self.model.tokenizer.eos
        return -1 if eos is None else eos

    def n_ctx(self) -> int:
        """Positions of an answer."""
        return self.model.engine.context

    def n_vocab(self) -> int:
        """Size of the vocabulary."""
        return int(self.model.info["n_vocab"])

    def n_embd(self) -> int:
        """Size of a vector."""
        return int(self.model.info["n_embd"])

    # ---- vectors ----------------------------------------------------------------------------
    def embed(self, input: str | list[str], normalize: bool = True, truncate: bool = True) -> Any:
        """Vectors, as lists. They are always of length 1, and texts that are too long are refused."""
        del normalize, truncate
        return self.model.embed(input).tolist()

    def create_embedding(self, input: str | list[str], model: str | None = None) -> dict[str, Any]:
        """Vectors in OpenAI's form."""
        texts = [input] if isinstance(input, str) else list(input)
        vectors = self.model.embed(texts).tolist()
        data = [{"object": "embedding", "embedding": vector, "index": i} for i, vector in enumerate(vectors)]
        n = sum(len(self.model.tokenizer.encode(text)) for text in texts)
        return {"object": "list", "data": data, "model": model or self.model_path, "usage": {"prompt_tokens": n, "total_tokens": n}}

    # ---- the rest ---------------------------------------------------------------------------
    def reset(self) -> None:
        """Nothing is kept that an answer depends on."""

    def close(self) -> None:
        """Gives the memory back."""
        self.model.close()

    def generate(self, tokens: Sequence[int], *, temp: float = 0.8, top_k: int = 40, top_p: float = 0.95, min_p: float = 0.05,
                 stopping_criteria: Callable[..., bool] | None = None, **options: Any) -> Iterator[int]:  # fmt: skip
        """The ids that follow, one by one."""
        fields = self._fields({"temperature": temp, "top_k": top_k, "top_p": top_p, "min_p": min_p,
                               "stopping_criteria": stopping_criteria, **options}, "generate")  # fmt: skip
        with self.model.stream(list(tokens), **fields) as stream:
            for piece in stream:
                if piece.token >= 0:
                    yield piece.token
