# SPDX-License-Identifier: Apache-2.0
"""Public servers of the Model Context Protocol: the tools that they list are taken as they are, by all interfaces, calls
of each satisfy its schema, and one loop goes from a question over a call and its result to an answer."""

import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import jsonschema
import openai
from mcp import ClientSession, StdioServerParameters, stdio_client

from check import equal, options

SERVERS = {"mcp_server_time": ["--local-timezone", "UTC"], "mcp_server_fetch": [], "mcp_server_git": []}
QUESTION = {"role": "user", "content": "What time is it in Oslo?"}


def functions(tools):
    return [{"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}} for tool in tools]


def check_tool(client, tool, others):
    """A call of one tool, among all those of its server, satisfies its schema. Quotes are likely, so that texts end, and colons, which
    addresses need."""
    choice = {"type": "function", "function": {"name": tool.name}}
    quote, colon = (client.post("/tokenize", cast_to=dict, body={"content": text})["tokens"][0] for text in '":')
    for seed, temperature in ((1, 0), (2, 1.5)):
        reply = client.chat.completions.create(
            model="tools", messages=[QUESTION], tools=functions(others), tool_choice=choice, temperature=temperature, seed=seed, max_tokens=1500,
            logit_bias={quote: 30, colon: 20})
        [call] = reply.choices[0].message.tool_calls
        equal((call.function.name, reply.choices[0].finish_reason), (tool.name, "tool_calls"), "a call")
        jsonschema.validate(json.loads(call.function.arguments), tool.input_schema)


async def loop(client, session, tools):
    """A question, a call, what the server says to it, an answer."""
    [tool] = [tool for tool in tools if tool.name == "get_current_time"]
    zone = {"type": "object", "properties": {"timezone": {"enum": ["Europe/Oslo"]}}, "required": ["timezone"], "additionalProperties": False}
    given = functions([tool])
    given[0]["function"]["parameters"] = zone  # so that a model that knows no time zones names one
    asked = dict(model="tools", tools=given, temperature=0, max_tokens=200)
    said = client.chat.completions.create(**asked, messages=[QUESTION], tool_choice="required").choices[0].message
    messages = [QUESTION, said]
    for call in said.tool_calls:
        result = await session.call_tool(call.function.name, json.loads(call.function.arguments))
        assert not result.is_error and "Europe/Oslo" in result.content[0].text, result
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result.content[0].text})
    assert client.chat.completions.create(**asked, messages=messages, tool_choice="none").choices[0].message.content is not None


async def check_server(client, name, words):
    async with stdio_client(StdioServerParameters(command=sys.executable, args=["-m", name, *words])) as streams, ClientSession(*streams) as session:
        await session.initialize()
        tools = (await session.list_tools()).tools
        assert tools, name
        for tool in tools:
            check_tool(client, tool, tools)
        if name == "mcp_server_time":
            await loop(client, session, tools)
        print(f"{name}: {len(tools)} tools", flush=True)


async def main():
    with options().server_with_tools(context=16384) as address, openai.OpenAI(base_url=address + "/v1", api_key="none") as client:
        for name, words in SERVERS.items():
            with tempfile.TemporaryDirectory() as folder:
                if name == "mcp_server_git":
                    subprocess.run(["git", "init", "-q", folder], check=True)
                    words = ["--repository", str(Path(folder))]
                await check_server(client, name, words)


asyncio.run(main())
