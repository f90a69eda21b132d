"""One MCP server made with the official Python SDK: python.py stdio|sse|http|ws [PORT].

With version 1 of the SDK it is a FastMCP server, with version 2 an MCPServer.
"""
import sys

how, port = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
try:
    from mcp.server.fastmcp import Context, FastMCP
    from mcp.server.fastmcp.exceptions import ToolError

    app, where = FastMCP("peer", host="127.0.0.1", port=port), {}
except ModuleNotFoundError:
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

    app, where = MCPServer("peer"), {"host": "127.0.0.1", "port": port}


@app.tool()
def echo(text: str) -> str:
    """Returns the text."""
    return text


@app.tool()
def add(a: int, b: int) -> int:
    """Adds two whole numbers."""
    return a + b


@app.tool()
async def count(ctx: Context, to: int) -> str:
    """Counts, and tells how far it is."""
    for i in range(to):
        await ctx.report_progress(i + 1, to)
    return f"counted to {to}"


@app.tool()
def fail() -> str:
    """Fails."""
    raise ToolError("it went wrong")


@app.prompt()
def greet(name: str) -> str:
    """Greets somebody."""
    return f"Say hello to {name}"


@app.resource("peer://note")
def note() -> str:
    """A note."""
    return "grüezi"


def serve_websocket() -> None:
    import uvicorn
    from mcp.server.websocket import websocket_server
    from starlette.applications import Starlette
    from starlette.routing import WebSocketRoute

    async def endpoint(ws):
        async with websocket_server(ws.scope, ws.receive, ws.send) as (r, w):
            server = app._mcp_server
            await server.run(r, w, server.create_initialization_options())

    uvicorn.run(Starlette(routes=[WebSocketRoute("/ws", endpoint)]), host="127.0.0.1", port=port)


if how == "ws":
    serve_websocket()
elif how == "stdio":
    app.run("stdio")
else:
    app.run({"http": "streamable-http"}.get(how, how), **where)
