# SPDX-License-Identifier: Apache-2.0
"""Chat templates in Python's Jinja2, set up as transformers sets it up, and random conversations."""

from __future__ import annotations

import datetime
import json
import random
import subprocess

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

NOW = 1_750_000_000
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}


class Generation(jinja2.ext.Extension):
    """{% generation %}: its body, in a scope of its own."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


class Refused(jinja2.TemplateError):
    """The error of raise_exception: other ways are not tried."""


def _raise(message):
    raise Refused(message)


def _tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = _tojson
    env.globals["raise_exception"] = _raise
    env.globals["strftime_now"] = lambda form: datetime.datetime.fromtimestamp(NOW).strftime(form)
    return env


def opened(messages):
    """Messages whose calls have their arguments as objects; and whether there are such."""
    copy, had = json.loads(json.dumps(messages)), False
    for message in copy:
        for call in message.get("tool_calls") or []:
            arguments = call.get("function", {}).get("arguments")
            try:
                value = json.loads(arguments) if isinstance(arguments, str) else None
            except ValueError:
                value = None
            if isinstance(value, dict):
                call["function"]["arguments"] = value
                had = True
    return copy, had


def render(template, job):
    """The text of a job; an exception's text as (None, text)."""
    variables = {
        **TOKENS,
        "tools": job.get("tools"),
        "documents": None,
        "add_generation_prompt": not job.get("no_answer", False),
        **(job.get("variables") or {}),
    }
    messages, had = opened(job["messages"])
    ways = [messages, *([job["messages"]] if had else [])]
    if any("content" not in message for message in messages):
        ways += [[{"role": m["role"], "content": "", **m} for m in way] for way in ways]
    why = None
    for way in ways:
        try:
            return template.render(messages=way, **variables), None
        except Exception as e:  # a template may raise anything
            why = f"{type(e).__name__}: {e}"
            if isinstance(e, Refused):
                break
    return None, why


class Tool:
    """The C side: one job a line."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"TZ": "UTC"})

    def run(self, source, job):
        line = {"template": source, "tokens": TOKENS, "now": NOW, **job}
        self.process.stdin.write(json.dumps(line).encode() + b"\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the program ended: {self.process.wait()}")
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        return self.process.wait()


# ---- random conversations ------------------------------------------------------------------------

WORDS = (
    "Hi", "hello there", " padded ", "Ünïcode ß", "日本語", "🙂", "a\nb\n", "<|im_end|>", "<|eot_id|>", "</s>",
    "[INST]", "<think>because</think>", "<think>\nI see\n</think>\n\nyes", "it's", '"quoted"', "1 < 2 & 3", "\\n",
    "{{ x }}", "{% if %}", "\ttab", "é", "", "null", "<tool_call>", "x" * 60, "</think>", "a  b", "\u00a0",
)
VARIABLES = (
    None, None, None, {"enable_thinking": False}, {"enable_thinking": True}, {"date_string": "1 May 2025"},
    {"builtin_tools": ["brave_search"]}, {"reasoning_effort": "high"}, {"thinking": True}, {"tools_in_user_message": False},
    {"custom_tools": None}, {"keep_past_thinking": True},
)


def words(r, least=0):
    return r.choice(("", " ", "\n")).join(r.choice(WORDS) for _ in range(r.randint(least, 4)))


def arguments(r):
    value = {r.choice(("city", "n", "deep", "ä")): r.choice((words(r), 3, 2.5, 12345678901234567890123, True, None, [1, "b"], {"k": words(r)}))}
    return json.dumps(value, ensure_ascii=r.random() < 0.5) if r.random() < 0.95 else "not json"


def call(r, i):
    return {"id": f"call_{i:05d}", "type": "function", "function": {"name": r.choice(("get", "add")), "arguments": arguments(r)}}


def tool(r):
    properties = {
        name: {"type": r.choice(("string", "integer", "number", "boolean", "array", "object")), "description": words(r)}
        for name in r.sample(("city", "n", "unit", "list"), r.randint(0, 3))
    }
    parameters = {"type": "object", "properties": properties, "required": list(properties)[:1]}
    if r.random() < 0.3:
        parameters["properties"]["unit"] = {"type": "string", "enum": ["a", "b"]}
    function = {"name": r.choice(("get", "add")), "description": words(r, 1), "parameters": parameters}
    return {"type": "function", "function": function}


def assistant(r, tools, messages):
    if not tools or r.random() < 0.5:
        messages.append({"role": "assistant", "content": words(r, 1)})
        return
    calls = [call(r, i) for i in range(r.randint(1, 2))]
    message = {"role": "assistant", "tool_calls": calls}
    if r.random() < 0.4:
        message["content"] = words(r)
    messages.append(message)
    for one in calls:
        messages.append({"role": "tool", "content": words(r), "name": "get", "tool_call_id": one["id"]})
    messages.append({"role": "assistant", "content": words(r, 1)})


def in_order(message):
    """The members in the order in which they are written."""
    return {key: message[key] for key in ("role", "content", "name", "tool_calls", "tool_call_id") if key in message}


def conversation(r):
    """Returns a job of random messages: mostly such as templates expect, now and then others."""
    tools = [tool(r) for _ in range(r.randint(1, 2))] if r.random() < 0.35 else None
    messages = [{"role": "system", "content": words(r)}] if r.random() < 0.4 else []
    for _ in range(r.randint(1, 3)):
        messages.append({"role": "user", "content": words(r)})
        assistant(r, tools, messages)
    if r.random() < 0.75:
        messages.append({"role": "user", "content": words(r, 1)})
    if r.random() < 0.05:
        r.shuffle(messages)
    if r.random() < 0.03:
        messages[0]["role"] = r.choice(("developer", "ipython", "robot", "tool"))
    job = {"messages": [in_order(m) for m in messages], "no_answer": r.random() < 0.3}
    if tools is not None:
        job["tools"] = tools
    variables = r.choice(VARIABLES)
    return {**job, "variables": variables} if variables is not None else job


def compare(env, program, source, n, seed):
    """The first difference of n conversations, or None, and how many both rendered."""
    r = random.Random(seed)
    try:
        template = env.from_string(source)
    except jinja2.TemplateSyntaxError as e:
        return f"Jinja2 does not read it: {e}", 0
    rendered = 0
    for i in range(n):
        job = conversation(r)
        text, error = render(template, job)
        got = program.run(source, job)
        rendered += text is not None and "text" in got
        if text != got.get("text"):
            return f"conversation {i}: {json.dumps(job)}\nJinja2: {error or text!r}\ntern:   {got.get('error') or got['text']!r}", rendered
    return None, rendered
