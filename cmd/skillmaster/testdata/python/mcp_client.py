"""Speaks to `skillmaster serve --mcp` with the stock Python client (package mcp on PyPI), over stdio and over HTTP.

Use: mcp_client.py stdio COMMAND ARGS...   or   mcp_client.py http URL TOKEN
Prints one JSON object: tools, skills found, outcomes.
"""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def answer(result):
    structured = getattr(result, "structuredContent", None) or getattr(result, "structured_content", None)
    return structured if structured is not None else json.loads(result.content[0].text)


async def talk(read, write):
    async with ClientSession(read, write) as session:
        await session.initialize()
        tools = sorted(t.name for t in (await session.list_tools()).tools)
        found = answer(await session.call_tool("search_skills", {"query": "fridge"}))
        one = answer(await session.call_tool("read_skill", {"skill_id": found["skills"][0]["skill_id"]}))
        added = answer(await session.call_tool("propose_skill", {
            "title": "Count saucers", "principle": "Count every saucer twice.", "when_to_apply": "two are wanted"}))
        used = answer(await session.call_tool("report_use", {"skill_ids": [one["skill_id"]], "success": True}))
        print(json.dumps({"tools": tools, "found": found, "one": one, "added": added, "used": used}))


async def main():
    if sys.argv[1] == "stdio":
        async with stdio_client(StdioServerParameters(command=sys.argv[2], args=sys.argv[3:], env={"SKILLMASTER_TEST_AS_PROGRAM": "1"})) as (read, write):
            await talk(read, write)
        return
    headers = {"Authorization": "Bearer " + sys.argv[3]}
    try:  # version 2
        from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
        streams = streamable_http_client(sys.argv[2], http_client=create_mcp_http_client(headers=headers))
    except ImportError:  # version 1
        from mcp.client.streamable_http import streamablehttp_client
        streams = streamablehttp_client(sys.argv[2], headers=headers)
    async with streams as opened:
        await talk(opened[0], opened[1])


asyncio.run(main())
