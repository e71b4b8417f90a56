"""Speaks to `squad mcp` with the official Python package, whichever major version runs this, and prints what it heard.

The arguments are the program and the project, or a URL and a token.
"""

import asyncio
import json
import sys

import mcp
from mcp.client import streamable_http

FIRST, SECOND = sys.argv[1:3]
IS_HTTP = FIRST.startswith("http://")
SERVER = mcp.StdioServerParameters(command=FIRST, args=["-C", SECOND, "mcp", "--engine", "rehearsal"])
HEADERS = {"Authorization": f"Bearer {SECOND}"}
MEMBERS = {"members": [{"roleId": "ada", "task": "Look."}, {"roleId": "bob", "task": "Look too."}]}


async def talk(session, version):
    told = []

    async def progress(done, of, message):
        told.append(done)

    roles = await session.call_tool("list_roles", {})
    started = await session.call_tool("start_squad_members", MEMBERS, progress_callback=progress)
    content = [part.model_dump(mode="json") for part in started.content]
    result = json.loads(content[0]["text"])
    output = await session.read_resource(result["members"][0]["logUri"])
    refused = await session.call_tool("start_squad_members", {"members": [{"roleId": "nobody", "task": "x"}]})
    prompt = await session.get_prompt("ada", {"task": "Look."})
    print(json.dumps({
        "version": version,
        "tools": [tool.name for tool in (await session.list_tools()).tools],
        "roles": json.loads(roles.content[0].text)["roles"],
        "result": result,
        "links": [part["type"] for part in content],
        "output": output.contents[0].text,
        "progress": told,
        "refused": refused.content[0].text,
        "prompt": prompt.messages[0].content.text,
        "resources": [str(resource.uri) for resource in (await session.list_resources()).resources],
    }))


def connection(http_client):
    return streamable_http.streamable_http_client(FIRST, http_client=http_client) if IS_HTTP else None


async def main():
    async with streamable_http.create_mcp_http_client(headers=HEADERS) as http_client:
        if hasattr(mcp, "Client"):
            async with mcp.Client(connection(http_client) or SERVER) as client:
                await talk(client, client.protocol_version)
            return
        async with connection(http_client) or mcp.stdio_client(SERVER) as streams:
            async with mcp.ClientSession(*streams[:2]) as session:
                await talk(session, (await session.initialize()).protocolVersion)


asyncio.run(main())
