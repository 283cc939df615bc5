# SPDX-License-Identifier: Apache-2.0
"""Seeds for fuzz_serve: bodies of every kind for each route, and each field with values that are right and wrong. The
first byte chooses the route, modulo the number of described routes in the order of serve/routes.c, and its quotient
chooses the way in which calls are written.

    tests/fuzz/seeds_serve.py FOLDER
"""

import json
import re
import sys
from pathlib import Path

import seeds_grammar

SERVE = Path(__file__).resolve().parents[2] / "serve"
STYLES = 5
TALK = [
    {"role": "system", "content": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Now."}]},
    {"role": "user", "content": "Hi \u00e9 \U0001f642"},
]
SAMPLING = {"temperature": 0.7, "top_p": 0.9, "top_k": 5, "min_p": 0.1, "seed": 3, "repeat_penalty": 1.1}
SAMPLING |= {"presence_penalty": 0.5, "frequency_penalty": -0.5, "repeat_last_n": 8, "logit_bias": {"7": 1.5}}
LETTERS = list("etaoinshr dlu,.")
BODIES = [
    {"messages": TALK, "max_tokens": 2, "model": "tiny"},
    {"messages": TALK, "max_tokens": 2, "stream": True, "stream_options": {"include_usage": True}, "n": 2},
    {"messages": TALK, "max_completion_tokens": 1, "logprobs": True, "top_logprobs": 2, "system": "x", **SAMPLING},
    {"messages": TALK[1:], "max_tokens": 3, "system": "x", "stream": True},
    {"messages": TALK[1:], "max_tokens": 3, "system": [{"type": "text", "text": "x"}], "stop_sequences": ["e", "a"]},
    {"prompt": "Once", "max_tokens": 3, "stop": ["a", "b"], "echo": True, "unknown": {"a": [None]}},
    {"prompt": ["a", "b"], "max_tokens": 2, "stream": True, "logprobs": 2, "ignore_eos": True, "n": 2},
    {"prompt": ["a", "b"], "max_tokens": 2, "stream": True, "logprobs": 2, "echo": True},
    {"prompt": [1, 2, 3], "n_predict": 2, "n_probs": 2, "stream": True, "cache_prompt": False, "return_tokens": True},
    {"prompt": "Once", "max_tokens": 0, "echo": True, "logprobs": 1}, {"prompt": "Once", "n_predict": 0, "n_cmpl": 2}, {"prompt": "Once", "n_predict": 3, "n_cmpl": 2, "stop": "e"}, {"prompt": {"prompt_string": "a"}, "n_predict": 1}, {"prompt": {"prompt_string": "a", "multimodal_data": ["x"]}}, {"prompt": [1, "a", 2, "<s>"], "n_predict": 1}, {"prompt": [["a", 1], "b"], "n_predict": 1}, {"prompt": [1, None]}, {"prompt": [[1, 2], [3]], "max_tokens": -1, "stop": "x"}, {"prompt": []}, {"prompt": [[]]}, {"prompt": ""}, {"prompt": [""] * 20}, {"prompt": "a" * 600}, {"prompt": [9999]},
    {"input": TALK, "max_output_tokens": 2, "instructions": "y", "stream": True, "metadata": {"k": "v"}},
    {"input": "Hello", "max_output_tokens": 2, "include": ["message.output_text.logprobs"], "top_logprobs": 1},
    {"input": "Hello", "max_output_tokens": 2, "include": ["message.output_text.logprobs"], "top_logprobs": 1, "stream": True},
    {"input": ["a", "bc"], "encoding_format": "base64", "dimensions": 5}, {"input": [[1, 2], [3]], "dimensions": 9999}, {"input": [5, 6]}, {"content": ["a", [1, 2]], "embd_normalize": 2}, {"input": [{"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "a"}]}], "max_output_tokens": 1},
    {"content": "What is 2+2?", "add_special": True, "with_pieces": True}, {"content": "\u00e9\U0001f642", "with_pieces": True, "parse_special": False}, {"content": 5}, {"content": "a", "add_special": 1}, {"prompt": "a", "return_token_strs": True}, {"tokens": [5, 6, 7]}, {"tokens": [-1]}, {"tokens": 5}, {"tokens": list(range(300))},
    {"tools": [], "tool_choice": "none", "response_format": {"type": "text"}, "modalities": ["text"], "messages": TALK},
    {"messages": TALK, "max_tokens": 1, "max_completion_tokens": 2}, {"messages": TALK, "top_logprobs": 2}, {"messages": TALK, "n": 99}, {"messages": TALK, "n": 3, "max_tokens": 2, "stream": True, "logprobs": True}, {"messages": TALK, "max_tokens": 2, "max_completion_tokens": 2}, {"messages": TALK, "model": "other"}, {"prompt": "a", "echo": True, "logprobs": 1, "stream": True, "n": 2, "max_tokens": 1}, {"prompt": "a", "max_tokens": 6, "logprobs": 5}, {"prompt": [1] * 511, "max_tokens": 5, "n_predict": 5}, *({"messages": [{"role": "user", "content": "Z" * n}], "input": "Z" * n, "max_tokens": 30, "max_output_tokens": 30} for n in (440, 460, 480, 490, 495, 500, 505)),
    {"prompt": "Once", "messages": TALK[1:], "input": "Once", "stop": LETTERS, "stop_sequences": LETTERS, "max_tokens": 20, "max_output_tokens": 20, "n_predict": 20}, {"prompt": "Once", "messages": TALK[1:], "input": "Once", "stop": LETTERS, "stop_sequences": LETTERS, "max_tokens": 20, "max_output_tokens": 20, "n_predict": 20, "stream": True}, {"prompt": "a", "messages": TALK, "stop": [*LETTERS, "x"], "stop_sequences": [*LETTERS, "x"]}, {"content": "a", "add_special": False}, {"tokens": []}, {"input": ["a", "bc"], "content": ["a", "bc"], "encoding_format": "base64"}, {"input": "a", "encoding_format": "float", "dimensions": 88},
    *({"prompt": "a", "messages": TALK, "max_tokens": 1, "logit_bias": bias} for bias in ({"": 1}, {"12345678901": 1}, {"5": True}, {"5": False}, {"99999": 1}, {"5": 1e7}, {str(i): 1 for i in range(300)}, [[1.5, 1]], [[-1, 1]], [[999999, 1]], [[5, "x"]], [["abc", 1]], [[5]], [5])), {"input": "a", "include": ["reasoning.encrypted_content"], "truncation": "disabled", "max_output_tokens": 1}, {"messages": TALK[1:], "thinking": {"type": "disabled"}, "max_tokens": 1}, {"prompt": "a", "suffix": "", "typical_p": 1.0, "functions": [], "max_tokens": 1, "seed": -1, "top_k": -1},
    {"messages": []}, {"messages": [1]}, {"messages": {}}, {},
    {"prompt": "a", "add_special_tokens": False}, {"prompt": "a", "add_special_tokens": True}, {"content": "<s>a", "parse_special": True}, {"prompt": "a", "n": 2, "max_tokens": 0, "echo": True}, {"prompt": "a", "n_cmpl": 2, "n_predict": 0}, {"prompt": [1, 2], "echo": True, "logprobs": 1, "max_tokens": 2}, {"prompt": [1, 2], "echo": True, "logprobs": 1, "max_tokens": 2, "stream": True}, {"prompt": [1, 2], "echo": True, "max_tokens": 2, "stream": True}, {"prompt": "a", "best_of": 1, "max_tokens": 1},
    {"prompt": "a", "messages": TALK, "input": "a", "max_tokens": 1, "logit_bias": {f"{i:05}": 0 for i in range(4097)}}, {"prompt": "a", "n_predict": 1, "logit_bias": [[5, 1]] * 4097}, {"prompt": "a", "n_predict": 1, "logit_bias": [["ab" * 30, 1]] * 100}, {"prompt": "a", "n_predict": 1, "logit_bias": [["\U0001f642", False]]}, {"input": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "output_text", "text": "b"}]}, {"role": "assistant", "content": "y"}], "max_output_tokens": 1},
    *({"prompt": "a", "messages": TALK[1:], "max_tokens": 3, "stream": True, "stream_options": options} for options in (None, 1, {}, {"include_usage": None}, {"include_usage": 1}, {"include_usage": False})), *({"prompt": "a", "messages": TALK[1:], "input": "a", "max_tokens": 12, "max_output_tokens": 12, "n_predict": 12, "stream": stream, "logit_bias": {str(i): 100}} for i in range(1, 300, 13) for stream in (True, False)),
]

# Forms of an answer.
SCHEMA = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], "additionalProperties": False}
FORMS = [
    {"response_format": value} for value in ({"type": "json_object"}, {"type": "json_object", "schema": SCHEMA}, {"type": "json_object", "schema": 1}, {"type": "json_schema"}, {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": SCHEMA}}, {"type": "json_schema", "json_schema": {"name": 1, "schema": SCHEMA}}, {"type": "json_schema", "json_schema": {"strict": 1, "schema": SCHEMA}}, {"type": "json_schema", "json_schema": {"schema": {"type": "x"}}}, {"type": "json_schema", "json_schema": {"schema": False}}, {"type": "x"}, {"type": 1})
] + [
    {"text": value} for value in ({}, {"format": None}, {"format": {"type": "text"}}, {"format": {"type": "json_object"}}, {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}}, {"format": {"type": "json_schema", "name": [], "schema": SCHEMA}}, {"format": {"type": "x"}})
] + [
    {"output_format": {"type": "json_schema", "schema": SCHEMA}}, {"output_format": {"type": "x"}}, {"output_format": {"type": "json_schema"}}, {"json_schema": SCHEMA}, {"json_schema": True}, {"json_schema": 1}, {"grammar": 'root ::= "ab" | "c"'}, {"grammar": "root"}, {"grammar": ""}, {"grammar": 1}, {"grammar": 'root ::= "a"', "json_schema": SCHEMA}, {"grammar": 'root ::= "a"', "ignore_eos": True}, {"json_schema": SCHEMA, "max_tokens": 30, "max_output_tokens": 30, "logprobs": True, "stream": True}, {"grammar": 'root ::= [ab]{9}', "n": 2, "max_tokens": 12},
]

# Tools, as chats declare them; of other interfaces by `flat`.
FUNCTION = {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"], "additionalProperties": False}}
OTHER = {"name": "g.h-1_2"}
NESTED = {"name": "n" * 60, "parameters": {"type": "object", "properties": {"a": {"const": {"b": ["c\"\\}]", {"d": [[], {}]}]}}}, "required": ["a"], "additionalProperties": False}}
TOOLS = [
    [NESTED], [FUNCTION], [OTHER], [FUNCTION, OTHER], [OTHER, OTHER], [{**FUNCTION, "name": ""}], [{**FUNCTION, "name": "a b"}], [{"name": "a" * 80}], [{**FUNCTION, "description": 1}], [{**FUNCTION, "strict": 1}], [{**FUNCTION, "strict": True, "parameters": None}], [{**FUNCTION, "parameters": 1}], [{**FUNCTION, "parameters": {"type": "array"}}], [{**FUNCTION, "parameters": {"type": 1}}], [{**FUNCTION, "parameters": {"properties": {"a": {"const": 1}}, "required": ["a"], "additionalProperties": False}}], [{**FUNCTION, "parameters": {"type": "object", "multipleOf": 1}}], [{"name": f"t{i}"} for i in range(140)],
]
CHOICES = ["auto", "none", "required", "any", "x", 1, {}, {"type": "function"}, {"type": "function", "function": {"name": "f"}}, {"type": "function", "name": "f"}, {"type": "function", "function": {"name": "zz"}}, {"type": "function", "name": "zz"}, {"type": "function", "function": {"name": 1}}, {"type": "any", "disable_parallel_tool_use": True}, {"type": "auto", "disable_parallel_tool_use": 1}, {"type": "tool", "name": "f"}, {"type": "tool", "name": "zz"}, {"type": "none"}, {"type": "x"}]
USER = {"role": "user", "content": "x"}


def call(name="f", arguments='{"a": 1}', number="c1"):
    return {"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(*listed, **more):
    return {"role": "assistant", "tool_calls": [*listed], **more}


ANSWER = {"role": "tool", "tool_call_id": "c1", "content": "1"}
CHATS = [
    [USER, calls(call()), ANSWER], [USER, calls(call(), call(number="c2"), content="t"), ANSWER, {**ANSWER, "tool_call_id": "c2"}], [USER, calls(call())], [USER, calls(call()), USER], [USER, ANSWER], [USER, calls(call()), ANSWER, ANSWER], [USER, calls(call(), call())], [USER, calls(call(arguments="[1]"))], [USER, calls(call(arguments="{"))], [USER, calls(call(arguments=""))], [USER, calls(call(arguments=1))], [USER, calls(call(name=""))], [USER, calls(call(name=1))], [USER, calls({"id": "c", "type": "x"})], [USER, calls({"id": "", "type": "function"})], [USER, calls({"id": "c", "type": "function"})], [USER, calls(content="x")], [USER, {"role": "assistant", "tool_calls": {}}], [USER, {"role": "assistant", "tool_calls": "x"}], [USER, {**USER, "tool_calls": [call()]}], [USER, calls(*(call(number=str(i)) for i in range(140)))], [USER, {**ANSWER, "tool_call_id": ""}], [USER, calls(call()), {**ANSWER, "content": [{"type": "text", "text": "a"}]}], [USER, calls(call()), {**ANSWER, "content": 1}],
    [USER, calls(call(), call(number="c2")), ANSWER, USER], [USER, calls(call(), call(number="c2")), ANSWER], [USER, calls(call(), call(number="c2")), {**ANSWER, "tool_call_id": "c2"}, ANSWER, calls(call()), ANSWER], [USER, calls(call(), content=[{"type": "text", "text": "t"}, {"type": "text", "text": "u"}]), ANSWER], [USER, calls(call(), content=1)], [USER, calls(call(), content=None), ANSWER], [USER, calls(call(name="n" * 200)), ANSWER],
    [{"role": "x", "content": "a"}], [{"role": 1, "content": "a"}], [{"content": "a"}], [{"role": "developer", "content": "a"}, USER], [{"role": "user"}], [{"role": "user", "content": None}], [{"role": "user", "content": []}], [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}], [{"role": "user", "content": [{"type": "text", "text": 1}]}], [{"role": "user", "content": ["a"]}], [USER, {"role": "assistant", "content": "y"}], [USER, {"role": "assistant", "content": "y"}, USER], [USER, USER], [{"role": "user", "content": "<|im_end|>\n<s>"}], [{"role": "user", "content": ""}],
]
USE = {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "1"}
MESSAGES = [
    [USER, {"role": "assistant", "content": [{"type": "text", "text": "t"}, USE]}, {"role": "user", "content": [RESULT, {"type": "text", "text": "u"}]}], [USER, {"role": "assistant", "content": [USE]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1"}]}], [USER, {"role": "assistant", "content": [USE]}, {"role": "user", "content": [{**RESULT, "content": [{"type": "text", "text": "1"}]}]}], [USER, {"role": "assistant", "content": [USE]}, {"role": "user", "content": [{**RESULT, "content": 1}]}], [USER, {"role": "assistant", "content": [USE]}, USER], [USER, {"role": "assistant", "content": [{**USE, "id": ""}]}], [USER, {"role": "assistant", "content": [{**USE, "name": 1}]}], [USER, {"role": "assistant", "content": [{**USE, "input": []}]}], [USER, {"role": "assistant", "content": [USE, USE]}], [{"role": "user", "content": [USE]}], [{"role": "user", "content": [RESULT]}], [{"role": "user", "content": [{**RESULT, "tool_use_id": ""}]}], [{"role": "user", "content": [{"type": "image"}]}], [USER, {"role": "assistant", "content": "y"}], [USER, {"role": "assistant", "content": []}, USER], [{"role": "system", "content": "x"}], [{"role": "user", "content": 1}],
]
ITEM = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "1"}
ITEMS = [
    [USER, ITEM, OUTPUT], [USER, ITEM, {**ITEM, "call_id": "c2"}, OUTPUT, {**OUTPUT, "call_id": "c2"}, USER], [USER, {"role": "assistant", "content": [{"type": "output_text", "text": "t"}]}, ITEM, OUTPUT], [USER, ITEM], [USER, ITEM, USER], [USER, OUTPUT], [USER, {**ITEM, "call_id": 1}], [USER, {**OUTPUT, "call_id": ""}], [USER, ITEM, {**OUTPUT, "output": 1}], [USER, ITEM, {**OUTPUT, "output": [{"type": "input_text", "text": "a"}]}], [{"type": "x"}], [{"type": 1}], [{**USER, "type": "message", "tool_calls": [call()]}], [ITEM, OUTPUT],
]


def flat(tools, schema):
    return [{schema if name == "parameters" else name: value for name, value in tool.items()} for tool in tools]


def chats():
    """(route, body) of three interfaces, with tools and conversations about them."""
    for tools in TOOLS:
        chat = [{"type": "function", "function": tool} for tool in tools]
        yield "/chat/completions", {"messages": [USER], "tools": chat, "max_tokens": 40}
        yield "/chat/completions", {"messages": [USER], "tools": chat, "tool_choice": "required", "max_tokens": 150, "stream": True, "parallel_tool_calls": False}
        yield "/responses", {"input": "x", "tools": [{"type": "function", **tool} for tool in tools], "tool_choice": "required", "max_output_tokens": 150, "stream": len(tools) == 1}
        yield "/messages", {"messages": [USER], "tools": flat(tools, "input_schema"), "tool_choice": {"type": "any"}, "max_tokens": 150, "stream": len(tools) == 1}
        yield "/messages", {"messages": [USER], "tools": flat(tools, "input_schema"), "max_tokens": 150}
    for choice in CHOICES:
        yield "/chat/completions", {"messages": [USER], "tools": [{"type": "function", "function": FUNCTION}], "tool_choice": choice, "max_tokens": 50, "n": 2}
        yield "/responses", {"input": "x", "tools": [{"type": "function", **FUNCTION}], "tool_choice": choice, "max_output_tokens": 50, "parallel_tool_calls": True}
        yield "/messages", {"messages": [USER], "tools": flat([FUNCTION], "input_schema"), "tool_choice": choice, "max_tokens": 50}
        yield "/chat/completions", {"messages": [USER], "tool_choice": choice}
    for tools in (1, [1], [{}], [{"type": "x"}], [{"type": "function"}], [{"type": "custom", "name": "f", "input_schema": {}}]):
        for route, messages in (("/chat/completions", "messages"), ("/responses", "input"), ("/messages", "messages")):
            yield route, {messages: [USER], "tools": tools, "max_tokens": 1}
    for messages in CHATS:
        yield "/chat/completions", {"messages": messages, "max_tokens": 2, "tools": [{"type": "function", "function": FUNCTION}]}
        yield "/chat/completions", {"messages": messages, "max_tokens": 2}
        yield "/apply-template", {"messages": messages}
        yield "/messages", {"messages": messages, "max_tokens": 2}
    for messages in MESSAGES:
        yield "/messages", {"messages": messages, "max_tokens": 2, "tools": flat([FUNCTION], "input_schema")}
    for items in ITEMS:
        yield "/responses", {"input": items, "max_output_tokens": 2, "tools": [{"type": "function", **FUNCTION}]}
    for form in FORMS:
        yield "/chat/completions", {"messages": [USER], "max_tokens": 9, **form}
        yield "/completions", {"prompt": "x", "max_tokens": 9, **form}
        yield "/completion", {"prompt": "x", "n_predict": 9, **form}
        yield "/responses", {"input": "x", "max_output_tokens": 9, **form}
        yield "/messages", {"messages": [USER], "max_tokens": 9, **form}
        yield "/chat/completions", {"messages": [USER], "tools": [{"type": "function", "function": FUNCTION}], **form}


def fields():
    """(route, body) for each field of serve/interfaces/fields.c and values of several kinds, each on a third of the routes."""
    names = sorted(set(re.findall(r'^    \{"(\w+)", ', (SERVE / "interfaces" / "fields.c").read_text(encoding="utf-8"), re.M)))
    bases = {"/chat/completions": {"messages": [USER], "max_tokens": 1}, "/completions": {"prompt": "x", "max_tokens": 1}, "/responses": {"input": "x", "max_output_tokens": 1}, "/messages": {"messages": [USER], "max_tokens": 1}, "/completion": {"prompt": "x", "n_predict": 1}, "/embeddings": {"input": "x"}, "/embedding": {"content": "x"}}
    for i, name in enumerate(names):
        for k, value in enumerate((None, True, False, 0, -1, -2, 2, 1.5, 1e300, 10**18, "x", "auto", [], ["a"], [1, 2], [[5, 1.5], [6, False], ["a", -1]], {}, {"5": 1, "6": -200, "x": 1}, {"type": "x"})):
            for route, base in [*bases.items()][(i + k) % 3 :: 3]:
                yield route, {**base, name: value}


def forms():
    """(route, body) with the schemas and grammars of fuzz_grammar."""
    for schema in seeds_grammar.schemas():
        yield "/completion", {"prompt": "x", "n_predict": 9, "json_schema": schema}
    for schema in [*seeds_grammar.crowded()][::8]:
        yield "/completion", {"prompt": "x", "n_predict": 9, "json_schema": schema}
    long = [grammar for grammar in seeds_grammar.LONG if len(grammar) < 12000]
    for grammar in [*seeds_grammar.GRAMMARS, *long]:
        yield "/completion", {"prompt": "x", "n_predict": 9, "grammar": grammar}
    for grammar in long:
        yield "/completions", {"prompt": "x", "max_tokens": 30, "grammar": grammar, "stream": True, "logprobs": 1}
        yield "/responses", {"input": "x", "max_output_tokens": 30, "grammar": grammar, "stream": True}
        yield "/messages", {"messages": [USER], "max_tokens": 30, "grammar": grammar, "stream": True}


def routes():
    """Paths of the described routes, in their order."""
    source = (SERVE / "routes.c").read_text(encoding="utf-8")
    table = source[source.index("routes[] = {") :].split("\n};")[0]
    return [path for path in re.findall(r'[({ ]"(/[\w/*.-]*)"', table) if path != "/page/*"]


def chosen(route, style=0, twice=False):
    """The first two bytes of an input: the route, and how calls are written; the request comes twice with the highest bit."""
    return bytes([route, style + 0x80 * twice])


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    paths = routes()
    inputs = [(path, body) for path in paths for body in BODIES]
    inputs += chats()
    inputs += fields()
    inputs += forms()
    for i, (path, body) in enumerate(inputs):
        style = 1 + i % (STYLES - 1) if body.get("tools") else 0
        route = paths.index(path)
        (folder / f"{i:05d}").write_bytes(chosen(route, style) + json.dumps(body).encode())
        if i % 5 == 0 and any(name in body for name in ("tools", "grammar", "json_schema", "response_format")):
            (folder / f"twice-{i:05d}").write_bytes(chosen(route, style, True) + json.dumps(body).encode())
    hosts = (b"a-b.c:80", b"a:", b"a:99999", b"a:123456", b"a:1x", b"[::1]:8080", b"[::1", b"[]", b"[x]", b"[::1]x", b"127.0.0.1", b"a b", b"a" * 300, b"'")
    for i, host in enumerate(hosts):
        (folder / f"host-{i}").write_bytes(chosen(paths.index("/"), 0, i % 2) + host)
    for i, body in enumerate((b"", b"{", b"[]", b'{"a":', b'{"prompt":"\xff"}', b'{"prompt":"\\ud800"}', b'{"prompt":"a","temperature":1e999}', b'{"prompt":"a","prompt":"b"}', b'{"prompt":"\\ud800abcdefgh"}', b'{"prompt":"\\ud800\\nabcdef"}', b'{"prompt":"\\u12"}', b'{"\xc2\x85\xc3\xa9":1,"prompt":1}', b'{"prompt":"a","temperature":-1E-2}', b"{" + b'"a":[' * 99, b"1")):
        (folder / f"broken-{i}").write_bytes(chosen(paths.index("/completions")) + body)


if __name__ == "__main__":
    main()
