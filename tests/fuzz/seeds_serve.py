# SPDX-License-Identifier: Apache-2.0
"""Seeds for fuzz_serve: bodies of every kind, each for as many routes as the table may have. The first byte chooses
the route, modulo their number.

    tests/fuzz/seeds_serve.py FOLDER
"""

import json
import sys
from pathlib import Path

ROUTES = 32  # at least
TALK = [
    {"role": "system", "content": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Now."}]},
    {"role": "user", "content": "Hi \u00e9 \U0001f642"},
]
SAMPLING = {"temperature": 0.7, "top_p": 0.9, "top_k": 5, "min_p": 0.1, "seed": 3, "repeat_penalty": 1.1}
SAMPLING |= {"presence_penalty": 0.5, "frequency_penalty": -0.5, "repeat_last_n": 8, "logit_bias": {"7": 1.5}}
BODIES = [
    {"messages": TALK, "max_tokens": 2, "model": "tiny"},
    {"messages": TALK, "max_tokens": 2, "stream": True, "stream_options": {"include_usage": True}, "n": 2},
    {"messages": TALK, "max_completion_tokens": 1, "logprobs": True, "top_logprobs": 2, "system": "x", **SAMPLING},
    {"prompt": "Once", "max_tokens": 3, "stop": ["a", "b"], "echo": True, "unknown": {"a": [None]}},
    {"prompt": ["a", "b"], "max_tokens": 2, "stream": True, "logprobs": 2, "ignore_eos": True, "n": 2},
    {"prompt": [1, 2, 3], "n_predict": 2, "n_probs": 2, "stream": True, "cache_prompt": False},
    {"prompt": "Once", "max_tokens": 0, "echo": True, "logprobs": 1},
    {"prompt": [[1, 2], [3]], "max_tokens": -1, "stop": "x"},
    {"input": TALK, "max_output_tokens": 2, "instructions": "y", "stream": True, "metadata": {"k": "v"}},
    {"input": "Hello", "max_output_tokens": 2, "include": ["message.output_text.logprobs"], "top_logprobs": 1},
    {"content": "What is 2+2?", "add_special": True, "with_pieces": True},
    {"tokens": [5, 6, 7]},
    {"tools": [], "tool_choice": "none", "response_format": {"type": "text"}, "modalities": ["text"]},
]


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for route in range(ROUTES):
        for number, body in enumerate(BODIES):
            (folder / f"{route}-{number}").write_bytes(bytes([route]) + json.dumps(body).encode())


if __name__ == "__main__":
    main()
