#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""First inputs of fuzz_template: tests/fuzz/seeds_template.py FOLDER. They are the templates, statements and
expressions of tests/templates, and the ones below, which those lack: they reach nearly all places that a long run
reaches."""

import ast
import json
import random
import sys
from pathlib import Path

NO_CONTENT, ALL_ELSE = 8, 4 + 16 + 32 + 64  # of the first byte
STEPS, MEMORY, OUTPUT = 1, 2, 3  # which limit
EXPRESSIONS = Path(__file__).with_name("expressions_template.txt")  # one a line
CALLS = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"n": [1, 2.5, null, true, "x"]}'}}]

STATEMENTS = (
    "{% for i in [1, 2, 3] %}{{ loop.index0 }}{{ loop.revindex }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }}{{ loop['index'] }}{{ loop[0] }}{{ loop.zz }}{{ loop|length }}{% endfor %}",
    "{% for i in [1, 2] %}{{ loop.cycle('a', 'b') }}{{ loop.changed(i, 1) }}{{ loop.changed(1) }}{{ loop.last }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop['cycle'](1) }}{% endfor %}",
    "{% for i in [1] %}{{ loop.cycle() }}{% endfor %}", "{% for i in [1] %}{{ loop.cycle(a=1) }}{% endfor %}", "{% for i in [1] %}{{ loop.cycle(1, a=1) }}{% endfor %}", "{% for i in [1] %}{{ loop }}{% endfor %}",
    "{% for i in [1] %}{{ [loop] }}{% endfor %}", "{% for i in [1] %}{{ loop == loop }}{{ loop|tojson }}{% endfor %}", "{% for i in 5 %}{% endfor %}", "{% for i in zz.y %}{% endfor %}",
    "{% for i in [1, 2] if i.a.b %}{% endfor %}", "{% for i in [1, 2] if i > 1 %}{{ i }}{% else %}n{% endfor %}", "{% for a, b in [[1, 2], [3]] %}{% endfor %}",
    "{% for a, b in [1] %}{% endfor %}", "{% for (a, b) in {'x': 1}.items() %}{{ a }}{{ b }}{% endfor %}", "{% for a, b, in [(1, 2)] %}{{ a }}{% endfor %}", "{% for a, b in [(1, 2, 3)] %}{% endfor %}",
    "{% for a in 'a\u00e9c' %}{{ a }}{% endfor %}", "{% for a in {'k': 1} %}{{ a }}{% endfor %}", "{% for a in zz %}{% else %}e{% endfor %}", "{% for a in 1, 2 %}{{ a }}{% endfor %}", "{% for a in [] %}{% else %}{{ zz.y }}{% endfor %}",
    "{% for a in messages %}{% for b in a.content %}{% if b == 'q' %}{% break %}{% endif %}{% continue %}{% endfor %}{% endfor %}", "{% for a in [1] recursive %}{% endfor %}",
    "{% for a, b in [(1, 2)] if a > b %}{% endfor %}", "{% for a, b in [1] if a %}{% endfor %}", "{% for i in [1] %}{% for i in 5 %}{% endfor %}{% endfor %}", "{% for i in [0] %}{{ 1 // i }}{% endfor %}", "{% for i in [1] if 1 // 0 %}{% endfor %}",
    "{% if true %}{% if false %}{% elif 1 %}a{% else %}{% endif %}{% endif %}{% if 0 %}{% else %}{% if 1 %}b{% endif %}c{% endif %}", "{% if zz.a %}{% endif %}", "{% if 0 %}{% elif 0 %}{% endif %}", "{% if 0 %}{% else %}{% if 1 %}b{% endif %}{% endif %}", "{% if 0 %}{% elif zz.a %}{% endif %}",
    "{% set a = 1 %}{% set b = a, 2 %}{% set c, d = b %}{{ c }}{{ d }}", "{% set a, b = [1] %}", "{% set a, b = [1, 2, 3] %}", "{% set a, b = 5 %}", "{% set a.b = 1 %}", "{% set a = 1 %}{% set a.b = 1 %}", "{% set ns = namespace() %}{% set ns.a = zz.y %}", "{% set a = zz.y %}",
    "{% set ns = namespace(a=1) %}{% set ns.b = [ns.a] %}{{ ns.b }}{{ ns }}", "{% set ns = namespace(a=1) %}{{ ns.zz }}{{ ns['a'] }}{{ ns|tojson }}", "{% set x %}{% for i in [1] %}{{ i }}{% endfor %}{% endset %}{{ x }}",
    "{% set x | replace('a', 'b') | upper %}{{ messages[0].content }}a{% endset %}{{ x }}", "{% set x | nothing %}a{% endset %}", "{% set x %}{{ 1 // 0 }}{% endset %}", "{% set (a, b) = (1, 2) %}{{ a }}", "{% set ns = namespace() %}{% set ns.a %}t{% endset %}{{ ns.a }}",
    "{% macro m(a, b=a, c=[1]) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m() }}{{ m(1, 2, 3) }}{{ m(c=1, a=2) }}{{ m }}", "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(z=2) }}", "{% macro m(a) %}{% endmacro %}{{ m(1, a=2) }}", "{% macro m(a,) %}{{ a }}{% endmacro %}{{ m(zz.y) }}",
    "{% macro m(a=zz.y) %}{% endmacro %}{{ m() }}", "{% macro m() %}{{ 1 // 0 }}{% endmacro %}{{ m() }}", "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}", "{% macro m() %}x{% endmacro %}{{ m|upper }}", "{% macro m() %}x{% endmacro %}{{ [m()] }}{{ m is callable }}{{ m == m }}{{ m.a }}{{ m|tojson }}",
    "{% macro m() %}{{ caller(1, 2) }}{% endmacro %}{% call(a) m() %}{{ a }}{% endcall %}", "{% call 5 %}{% endcall %}", "{% call zz() %}{% endcall %}", "{% call zz.y.x() %}{% endcall %}", "{% call zz(1 // 0) %}{% endcall %}", "{% call range(3) %}{% endcall %}", "{% call namespace() %}{% endcall %}", "{% call 'a'.upper() %}{% endcall %}",
    "{% macro m() %}{% break %}{% endmacro %}", "{% for i in [1] %}{% macro m() %}{% continue %}{% endmacro %}{% endfor %}", "{% macro m() %}{% endmacro %}{% for i in [1] %}{% call m() %}{% break %}{% endcall %}{% endfor %}",
    "{% filter upper | replace('A', 'b') | trim('x') %}a{{ messages[0].content }}{% endfilter %}", "{% filter nothing %}{% endfilter %}", "{% filter indent(width=1 // 0) %}{% endfilter %}", "{% filter upper %}{{ zz.y }}{% endfilter %}",
    "{% with %}{{ n }}{% endwith %}{% with a = 1, b = a %}{{ b }}{% endwith %}", "{% with a = 1 // 0 %}{% endwith %}", "{% generation %}{% set g = 1 %}{{ g }}{% endgeneration %}{{ g }}",
    "{% if 1 %}", "{% for i in [1] %}", "{% macro m() %}", "{% call m() %}", "{% filter upper %}", "{% with a = 1 %}", "{% set a %}", "{% generation %}", "{% if 1 %}{% else %}", "{% for i in [1] %}{% else %}", "{% if 1 %}{% elif %}{% endif %}", "{% if 1 %}{% else x %}{% endif %}", "{% for i in [1] %}{% endfor x %}",
    "{% if 1 x %}{% endif %}", "{% for 5 in [1] %}{% endfor %}", "{% for i of [1] %}{% endfor %}", "{% for i in %}{% endfor %}", "{% for i in [1] if %}{% endfor %}", "{% for i, 5 in [1] %}{% endfor %}", "{% for (i in [1] %}{% endfor %}", "{% set %}", "{% set 5 = 1 %}", "{% set a = %}", "{% set a. = 1 %}", "{% set (a = 1 %}", "{% set a 5 %}{% endset %}",
    "{% set a | %}{% endset %}", "{% set a | 5 %}{% endset %}", "{% set a | upper | 5 %}{% endset %}", "{% macro %}{% endmacro %}", "{% macro m %}{% endmacro %}", "{% macro m(5) %}{% endmacro %}", "{% macro m(a=) %}{% endmacro %}", "{% macro m(a b) %}{% endmacro %}", "{% macro m(a", "{% macro m() x %}{% endmacro %}", "{% call %}{% endcall %}", "{% call(5) m() %}{% endcall %}",
    "{% call m() x %}{% endcall %}", "{% call(a=1) m() %}{% endcall %}", "{% filter %}{% endfilter %}", "{% filter 5 %}{% endfilter %}", "{% filter upper x %}{% endfilter %}", "{% filter upper( %}{% endfilter %}", "{% with a %}{% endwith %}", "{% with a = %}{% endwith %}", "{% with a = 1 b = 2 %}{% endwith %}", "{% with 5 = 1 %}{% endwith %}", "{% generation x %}{% endgeneration %}", "{% break x %}", "{% continue %}",
    "{% 5 %}", "{% %}", "{{ }}", "{{", "{%", "{#", "{{ 1 %}", "{% if 1 }}", "{{ 1", "{{ 1.5", "{{ 1e5", "{{ 1e+", "{{ 'a\\", "{{ a", "{% if 1", "{# a", "{#a#}b{#- c -#} d {#+ e +#} f", "{% endfor %}", "{% else %}", "{% endif %}", "{% include 'x' %}", "{% if 1 %}{% endfor %}", "{% aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee %}", "{{ 'a\\\nb' }}", "{{ 1\n\n+ }}", "{%- if 1 %}{{- 2 }}",
    "{% raw %}", "{% raw %}{% endraw", "{% raw %} {%+ endraw +%} x", "{%- raw -%} {{ a }} {%- endraw -%} x", "{%  raw  %}{%", "{%+ raw +%}{%-  endraw  %}", "{% raw x %}{% endraw %}", "{% raw", "{%-raw-%}a{%-endraw-%}", "{% rawx %}", "{%\nraw\n%}{%\nendraw\n%}", "{% raw %}{{ {% x %} {% endra %}{% endraw %}", "{% raw +%}\n  a\n  {% endraw %}\nb", "{%", "{%-", "{% r",
    "a\n  {%+ if 1 +%}\n  b\n  {%- endif -%}\n\n c", "  {{- 1 -}}  \n", "{{ 1 +}}", "x{% if 1 %}\n{% endif %}\n\n", "\r\n\r", "a\r", "{{'a'}}{{\"b\"}}{{- '-}}' -}}", "\udcff\udcfe{{ '\udcff' }}", "{% if 1 %}\n  {# x #}\n  {% endif %}", "a {% if 1 -%}\n\n  x{% endif %}", "{{ 1 -}} \n {% if 1 %}{% endif %}", "{{ 1 -}}\n\t{%+ if 1 %}{% endif %}",
    "{{ messages }}{{ tools }}{{ documents }}{{ bos_token }}{{ eos_token }}{{ add_generation_prompt }}", "{{ messages[-1].content|tojson }}{{ messages[-1].tool_calls|tojson }}", "{% for m in messages %}{{ m.role }}{{ m.name }}{{ m.tool_call_id }}{{ m.content }}{% for c in m.tool_calls %}{{ c.function.arguments }}{% endfor %}{% endfor %}",
    "{% for m in messages %}{{ m.content + 'x' }}{% endfor %}", "{% for m in messages %}{% if m.tool_calls %}{{ m.tool_calls[0].function.arguments + 'x' }}{% endif %}{% endfor %}", "{% for m in messages %}{{ m.tool_calls[0].function.arguments.n }}{% endfor %}", "{{ messages[0].content[0] }}{{ messages[0].content[::-2] }}{{ messages[0].content|list }}",
    "{% for m in messages %}{% if m.tool_calls %}{{ m.tool_calls[0].function.arguments + 'x' }}{{ m.content + 'x' }}{% endif %}{% endfor %}",
    "{{ ('<'|safe) + messages[0].content + '&\"' }}{{ messages[0].content|title|capitalize }}{{ messages[0].content.split()|join('|') }}", "{{ messages[0].content * 2 }}{{ (messages[0].content ~ 'x')[1:] }}{{ (messages[0].content ~ 'x')|list|join }}{{ [messages[0].content ~ 'x'] }}",
)

# Each is applied to a long text, L: its steps are counted by its bytes.
LONG = """
L|upper
L|title
L|trim
L|trim('a')
L|length
L|list|length
L|reverse
L|replace('z', '')
L|replace('a', 'b')
L|replace('', '-')
L|replace('', '-', 3)
L|indent(2, true)
L|tojson
L|tojson(ensure_ascii=true)
[L]
{L: L}
L.split()
L.split('a')
L.rsplit()
L.rsplit('a')
L.rsplit('a', 2)
L.splitlines()
L.splitlines(true)
L.find('z')
L.find('y')
L.rfind('z')
L.count('a')
L.count('')
L.isalpha()
L.isspace()
L.startswith('a')
L.removeprefix('a')
L.format(1)
L is lower
L == L
L < L
L in L
'z' in L
L in [L]
L[5]
L[5:]
L[::-2]
L[99:0:-3]
L * 3
L + L
L ~ L
L|safe + L
(L|safe) + '<' * 99
'<' * 99 + (L|safe)
L|map('upper')|list
L|join(', ')
[L, L]|join(L)
L.join([L, L])
L|sort|join
L|unique|list
L|min
[L, L]|sort
{'a': L, 'b': [L, {}, [], ()]}|tojson
{'a': L, 'b': [L, {}, [], ()]}|tojson(indent=1)
{'b': 1, 'a': {1: 2, none: 3, true: 4, 1.5: 5}}|tojson(indent=1)
{'b': 1, 'a': 2, 'c': 3}|tojson(sort_keys=true)
['a', ('b',), {'c': 'd', 'e': 1.5}, none, true]|string
'x'|indent(200)
[1, 2]|reverse|list
{'b': 1, 'A': 2}|dictsort
{'b': 1, 'A': 2}.items()|list
[1, 2, 3][::2]
[1, 2] + [3]
[1, 2]|select('odd')|list
[1, 2]|map('string')|list
dict({'a': 1, 'b': 2}, c=3)
namespace(a=1, b=2).a
range(20)|list
'{{}} {} {a}'.format(1, a='b')
'<&>'|safe + '<&>'
raise_exception(L)
"""

# More than is allowed: nested too deep, too many steps, too long a text.
DEEP = (
    "{{ " + "(" * 500 + "1" + ")" * 500 + " }}", "{{ " + "[" * 500 + " }}", "{{ " + "not " * 500 + "1 }}", "{{ " + "-" * 500 + "1 }}", "{% if 1 %}" * 500, "{{ d" + ".a" * 500 + " }}", "{{ 1" + "+1" * 500 + " }}", "{{ 1" + "|string" * 500 + " }}",
    "{% for a in range(999) %}{% for b in range(999) %}{{ b }}{% endfor %}{% endfor %}", "{% set ns = namespace(x='ab') %}{% for i in range(30) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}", "{{ 'x' * 99999999 }}", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "{{ range(999)|sort(reverse=true) }}", "{{ range(999)|unique|list }}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(999) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x|tojson }}", "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(500) %}{% set ns.x = [ns.x] %}{% set ns.y = [ns.y] %}{% endfor %}{{ ns.x == ns.y }}", "{% set ns = namespace(x=[1]) %}{% for i in range(500) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace(x=[1], y=[2]) %}{% for i in range(500) %}{% set ns.x = [ns.x] %}{% set ns.y = [ns.y] %}{% endfor %}{{ ns.x < ns.y }}", "{{ ('a' * 999)|replace('', 'b' * 999) }}", "{{ 'a'|indent(99999999) }}", "{{ " + "1 if 1 else " * 500 + "1 }}", "{{ " + "9" * 70 + " }}", "{{ " + "1_" * 70 + "1.5 }}", "{{ 'a' * 9999 }}" * 60,
)

# Tools, calls and variables that are not proper JSON, or unusual.
JSON = (
    ("{}", "", ""), ("[", "", ""), ("", "{}", ""), ("", "[1]", ""), ("", "[{}]", ""), ("", '[{"function": 1}]', ""), ("", '[{"function": {"arguments": 1}}]', ""), ("", '[{"function": {"arguments": "[1]"}}]', ""), ("", '[{"function": {"arguments": "{"}}]', ""),
    ("", "", "[]"), ("", "", "{"), ("[9223372036854775808]", "", ""), ("[1e5, -1.5E-3, 12345678901234567890123456789012345678901234567890123456789012345]", "", ""), ('["\\ud83d\\ude42 \\u0000 \\n\\b\\f\\r\\t\\/ \\u00E9\\uaBcD", true, false, null, {"a": {}}]', "", '{"messages": 1, "a b": 2}'),
    ("[\udcff]", "", ""), ('["\udcff"]', "", ""), ('["\u00e9"]', "", ""), ("[1,]", "", ""), ('{"a" 1}', "", ""), ('{"a": 1 "b"}', "", ""), ("[1 2]", "", ""), ("[tru]", "", ""), ("[01]", "", ""), ("[1.]", "", ""), ("[1e]", "", ""), ("[1e+5, 0]", "", ""), ("[-]", "", ""), ('["\\x"]', "", ""), ('["\\', "", ""), ('["\\ud800"]', "", ""), ('["\\udc00"]', "", ""), ('["\\ud800\\u0041"]', "", ""), ('["\\u12', "", ""), ('["\\u12g4"]', "", ""), ('["\t"]', "", ""), ('["a', "", ""), ("[1]x", "", ""), ("[" * 600, "", ""), ("[" + "1," * 300 + "2]", "", ""), ('["\\ud800abcdefgh"]', "", ""), ('["\\ud800\\nabcdef"]', "", ""), ('["\\ud800\\ue000"]', "", ""), ('["\\u12"]', "", ""), ("", "[]", ""), ("", '[{"function": {}}]', ""), ('{1: 2}', "", ""), ('{"', "", ""), ("\r\n\t [\n] ", "", ""),
)


def constants(source):
    """Values of the constants of a module, without running it: it needs Jinja2."""
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            try:
                yield statement.targets[0].id, ast.literal_eval(statement.value)
            except ValueError:
                continue


def expressions(text):
    """Lines are cut at each ` | `: runs of up to three pieces."""
    for line in text.strip().splitlines():
        parts = line.split(" | ")
        for n in (1, 2, 3):
            for start in range(len(parts) - n + 1):
                yield "{{ " + " | ".join(parts[start : start + n]) + " }}"


def limits(draw):
    """A short template takes about this much, so limits are met in many places."""
    return (STEPS, draw.randrange(80)), (MEMORY, 215 + draw.randrange(200)), (OUTPUT, draw.randrange(40))


def inputs():
    """(first byte, limit, parts) of each."""
    path = Path(__file__).resolve().parents[1] / "templates" / "test_templates.py"
    found = dict(constants(path.read_text(encoding="utf-8")))
    job, draw = found["JOB"], random.Random(1)
    rest = [job["messages"][1]["content"], json.dumps(job["tools"]), "", json.dumps(job["variables"])]
    called = [rest[0], rest[1], json.dumps(CALLS), rest[3]]
    rare = ["{{ " + line + " }}" for line in EXPRESSIONS.read_text(encoding="utf-8").strip().split("\n")]
    for source in [*found["STATEMENTS"], *STATEMENTS, *DEEP, *rare]:
        yield 0, 0, [source, *rest]
        for kind, limit in limits(draw):
            yield kind, limit, [source, "a\u00e9 b", "", "", ""]
    for line in LONG.strip().split("\n"):
        for _ in range(8):
            for kind, limit in limits(draw):
                yield kind, limit, ["{% set L = messages[0].content %}{{ " + line + " }}", "a b\u00e9, c\n" * 60 + "y", "", "", ""]
    for source in expressions(found["EXPRESSIONS"]):
        yield STEPS, draw.randrange(400), [source, *rest]
    for source in [*found["TEMPLATES"].values(), *(source for source in STATEMENTS if "messages" in source)]:
        for kind in (0, NO_CONTENT, ALL_ELSE, NO_CONTENT + ALL_ELSE):
            yield kind, 0, [source, *called]
            yield kind, 0, [source, *rest]
            for which in (STEPS, MEMORY):
                yield kind + which, draw.randrange(1500), [source, *called]
    for tools, calls, variables in JSON:
        yield 0, 0, ["{{ messages }}{{ tools }}", "x", tools, calls, variables]


def main():
    folder = Path(sys.argv[1])
    for i, (kind, limit, parts) in enumerate(inputs()):
        head = bytes([kind, limit & 255, limit >> 8])
        (folder / f"{i:04d}").write_bytes(head + b"\0".join(text.encode("utf-8", "surrogateescape") for text in parts))


if __name__ == "__main__":
    main()
