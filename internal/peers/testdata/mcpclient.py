"""An MCP client made with the official Python SDK, against the gateway of tenon: mcpclient.py URL TOKEN.

Version 1 of the SDK has ClientSession, version 2 Client. Prints what the client got as JSON.
"""
import asyncio
import json
import sys

url, token = sys.argv[1:]
header = {"Authorization": "Bearer " + token}


async def use(client, failure):
    progress = []

    async def on_progress(value, total, message):
        progress.append(value)

    tools = await client.list_tools()
    echo = await client.call_tool("echo", {"text": "grüezi"})
    failed = await client.call_tool("fail", {})
    counted = await client.call_tool("count", {"to": 3}, progress_callback=on_progress)
    resource = await client.read_resource("peer://note")
    resources = await client.list_resources()
    prompts = await client.list_prompts()
    prompt = await client.get_prompt("greet", {"name": "Ann"})
    unknown = 0
    try:
        await client.call_tool("nosuch", {})
    except failure as e:
        unknown = e.error.code
    is_error = getattr(failed, "is_error", None)
    print(json.dumps({
        "tools": sorted(t.name for t in tools.tools), "echo": echo.content[0].text,
        "failed": failed.isError if is_error is None else is_error, "failure": failed.content[0].text,
        "counted": counted.content[0].text, "progress": len(progress), "resource": resource.contents[0].text,
        "resources": [str(r.uri) for r in resources.resources], "prompts": [p.name for p in prompts.prompts],
        "prompt": prompt.messages[0].content.text, "unknown": unknown}))


async def version1():
    from mcp import ClientSession, McpError
    from mcp.client.streamable_http import streamablehttp_client

    async with streamablehttp_client(url, headers=header) as (read, write, _):
        async with ClientSession(read, write) as session:
            await session.initialize()
            await use(session, McpError)


async def version2():
    import httpx2
    from mcp import Client, MCPError
    from mcp.client.streamable_http import streamable_http_client

    async with httpx2.AsyncClient(headers=header) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:
            await use(client, MCPError)


try:
    from mcp import Client  # noqa: F401
except ImportError:
    asyncio.run(version1())
else:
    asyncio.run(version2())
