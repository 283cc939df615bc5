# SPDX-License-Identifier: Apache-2.0
"""The small model with a chat template that has tools, a token that begins a call, so that biases can ask for one,
and room for the text that templates write about tools."""

import struct

import common
import gguf_edit

TOKEN = "<tool_call>"

HEAD = """{%- if tools %}Tools:{% for tool in tools %} {{ tool | tojson }}{% endfor %}
{% endif %}{% for m in messages %}{% if m.role == 'tool' %}Result of {{ m.name }}: {{ m.content }}
{% elif m.role == 'assistant' %}A: {{ m.content or '' }}{% for c in m.tool_calls or [] %}"""
TAIL = """{% endfor %}
{% else %}Q: {{ m.content }}
{% endif %}{% endfor %}{% if add_generation_prompt %}A:{% endif %}"""
TAGGED = HEAD + """<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>""" + TAIL
BARE = HEAD + """{"name": "{{ c.function.name }}", "parameters": {{ c.function.arguments | tojson }}}""" + TAIL
IDS = """{% if c.id | length != 9 %}{{ raise_exception('ids have nine letters') }}{% endif %}"""
LISTED = (
    HEAD.replace("{% for c in m.tool_calls or [] %}", "{% if m.tool_calls %}[TOOL_CALLS][{% endif %}{% for c in m.tool_calls or [] %}")
    + IDS
    + """{{ (c.function | tojson)[:-1] }}, "id": "{{ c.id }}"}{{ ', ' if not loop.last else ']' }}"""
    + TAIL
)
NAMED = HEAD + """[TOOL_CALLS]{{ c.function.name }}[ARGS]{{ c.function.arguments | tojson }}""" + TAIL
STRICT = TAGGED.replace("m.content or ''", "m.content.split('</think>')[-1]")
PARAMETERS = HEAD + """<tool_call>
<function={{ c.function.name }}>
{% for k, v in c.function.arguments | items %}<parameter={{ k }}>
{{ v if v is string else v | tojson }}
</parameter>
{% endfor %}</function>
</tool_call>""" + TAIL
SECTION = HEAD.replace("{% for c in", "{% if m.tool_calls %}<tool_calls>{% endif %}{% for c in") + (
    """<call id={{ c.id }}>{{ c.function.name }}={{ c.function.arguments | tojson }}</call>{{ '</tool_calls>' if loop.last }}""" + TAIL
)
SILENT = HEAD.replace("{% for c in m.tool_calls or [] %}", "") + TAIL.replace("{% endfor %}", "", 1)
SPOKEN = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}<assistant>"
PLAIN = "{% for m in messages %}{% if m.role not in ('user', 'assistant') %}{{ raise_exception('no ' + m.role) }}{% endif %}<{{ m.role }}>{{ m.content }}\n{% endfor %}<assistant>"
OTHER = HEAD + """[CALL]{{ c.function.name }}({{ c.function.arguments | tojson }})""" + TAIL


def _take_token(file, text, kind):
    """Gives another text to the last token that is not a part of others; returns its id."""
    tokens, kinds, merges = file.texts("tokenizer.ggml.tokens"), file.numbers("tokenizer.ggml.token_type"), file.texts("tokenizer.ggml.merges")
    parts = {part for merge in merges for part in merge.split(" ")}
    found = max(i for i, token in enumerate(tokens) if kinds[i] == 1 and token not in parts and len(token) > 2)
    file["tokenizer.ggml.merges"] = gguf_edit.strings([m for m in merges if m.replace(" ", "") != tokens[found]])
    tokens[found], kinds[found] = text, kind
    file["tokenizer.ggml.tokens"], file["tokenizer.ggml.token_type"] = gguf_edit.strings(tokens), gguf_edit.i32s(kinds)
    return found


def write(path, template, token=(TOKEN, 4), *others, context=2048):
    """Writes the model; returns the ids of the token that begins a call, and of the one that ends a text. Other tokens may
    get other texts, too."""
    file = gguf_edit.read(common.small_model())
    begin, end = [_take_token(file, *one) for one in (token, *others)][0], struct.unpack("<I", file["tokenizer.ggml.eos_token_id"][1])[0]
    file["bitnet-b1.58.context_length"] = gguf_edit.u32(context)
    file["tokenizer.chat_template"] = gguf_edit.string(template)
    path.write_bytes(file.to_bytes())
    return begin, end
