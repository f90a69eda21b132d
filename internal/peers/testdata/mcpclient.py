"""An MCP client made with the official Python SDK or fastmcp, against the gateway of tenon: mcpclient.py URL TOKEN [legacy].

Version 1 of the SDK has ClientSession, version 2 Client; fastmcp is a client of its own, which opens no subscription in
the era of 2026-07-28, so that it gets no notifications there. The endpoint URL/quiet has tools that do not change.
Prints what the client got as JSON.
"""
import asyncio
import contextlib
import json
import os
import sys

url, token, *era = sys.argv[1:]
header = {"Authorization": "Bearer " + token}


class Changes:
    """Counts the changes of the list of tools."""

    def __init__(self):
        self.count, self.first = 0, asyncio.Event()

    async def handle(self, message):
        message = getattr(message, "root", message)
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            self.add()

    def add(self):
        self.count += 1
        self.first.set()


def listed(tools):
    return sorted(t.name for t in getattr(tools, "tools", tools))


async def use(client, quiet, failure, changes, quietly):
    progress = []

    async def on_progress(value, total, message):
        progress.append(value)

    handler = {"progress_handler" if FAST else "progress_callback": on_progress}
    loud = {"raise_on_error": False} if FAST else {}
    tools = [n for n in listed(await client.list_tools()) if not n.startswith("grow")]
    echo = await client.call_tool("echo", {"text": "grüezi"})
    failed = await client.call_tool("fail", {}, **loud)
    counted = await client.call_tool("count", {"to": 3}, **handler)
    resource = await client.read_resource("peer://note")
    resources = await client.list_resources()
    prompts = await client.list_prompts()
    prompt = await client.get_prompt("greet", {"name": "Ann"})
    unknown = 0
    try:
        await client.call_tool("nosuch", {})
    except failure as e:
        unknown = e.error.code
    await quiet.list_tools()  # clients are notified of changes of lists that they have read
    mine = "py_%d" % os.getpid()
    await client.call_tool("grow", {"name": mine})
    if not FAST or era:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(changes.first.wait(), 30)
    await asyncio.sleep(1)  # for more notifications than there should be
    grown = []
    for _ in range(30):  # a client without notifications does not know when the gateway has read the new list
        grown = [n for n in listed(await client.list_tools()) if n.startswith("grown_%s_" % mine)]
        if grown:
            break
        await asyncio.sleep(1)
    is_error = getattr(failed, "is_error", None)
    print(json.dumps({
        "tools": tools, "echo": echo.content[0].text,
        "failed": failed.isError if is_error is None else is_error, "failure": failed.content[0].text,
        "counted": counted.content[0].text, "progress": len(progress),
        "resource": getattr(resource, "contents", resource)[0].text,
        "resources": [str(r.uri) for r in getattr(resources, "resources", resources)],
        "prompts": [p.name for p in getattr(prompts, "prompts", prompts)],
        "prompt": prompt.messages[0].content.text, "unknown": unknown,
        "grown": len(grown), "changes": changes.count, "quiet": quietly.count}))


async def version1():
    from mcp import ClientSession, McpError
    from mcp.client.streamable_http import streamablehttp_client

    changes, quietly = Changes(), Changes()
    async with contextlib.AsyncExitStack() as stack:
        async def connect(url, changes):
            read, write, _ = await stack.enter_async_context(streamablehttp_client(url, headers=header))
            session = await stack.enter_async_context(ClientSession(read, write, message_handler=changes.handle))
            await session.initialize()
            return session

        await use(await connect(url, changes), await connect(url + "/quiet", quietly), McpError, changes, quietly)


async def version2():
    import httpx2
    from mcp import Client, MCPError
    from mcp.client.streamable_http import streamable_http_client

    changes, quietly = Changes(), Changes()
    async with contextlib.AsyncExitStack() as stack:
        http = await stack.enter_async_context(httpx2.AsyncClient(headers=header, timeout=None))

        async def watch(subscription, changes):
            async for _ in subscription:
                changes.add()

        async def connect(url, changes):
            client = await stack.enter_async_context(Client(streamable_http_client(url, http_client=http)))
            subscription = await stack.enter_async_context(client.listen(tools_list_changed=True))
            watching = asyncio.create_task(watch(subscription, changes))
            stack.callback(watching.cancel)
            return client

        await use(await connect(url, changes), await connect(url + "/quiet", quietly), MCPError, changes, quietly)


async def fast():
    from fastmcp import Client
    from fastmcp.client.transports import StreamableHttpTransport
    from mcp import MCPError

    changes, quietly = Changes(), Changes()

    def client(url, changes):
        return Client(StreamableHttpTransport(url, headers=header), message_handler=changes.handle,
                      mode=era[0] if era else "auto")

    async with client(url, changes) as one, client(url + "/quiet", quietly) as other:
        await use(one, other, MCPError, changes, quietly)


try:
    import fastmcp  # noqa: F401

    FAST = True
except ImportError:
    FAST = False
if FAST:
    asyncio.run(fast())
else:
    try:
        from mcp import Client  # noqa: F401
    except ImportError:
        asyncio.run(version1())
    else:
        asyncio.run(version2())
