"""Helve's server as FastMCP's client sees it: one walk through it, told as one JSON object. Takes what python_sdk.py takes."""

import asyncio
import json
import os
import sys

from fastmcp import Client
from fastmcp.client.messages import MessageHandler
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError
from mcp.shared.exceptions import MCPError


def place(words):
    return words[0] if words[0].startswith("http") else StdioTransport(words[0], words[1:], env=dict(os.environ))


class Ear(MessageHandler):
    def __init__(self):
        self.heard = asyncio.Event()

    async def on_tool_list_changed(self, message):
        self.heard.set()


def text(result):
    return "\n".join(block.text for block in result.content if block.type == "text")


async def names(client):
    while True:
        found = sorted(tool.name for tool in await client.list_tools())
        if {"everything_echo", "time_convert_time"} <= set(found):
            return found
        await asyncio.sleep(0.1)


async def failure(client, tool, arguments):
    try:
        await client.call_tool(tool, arguments)
    except ToolError as error:
        return {"is_error": True, "text": str(error)}


async def main(era, words):
    told, ear = [], Ear()

    async def progress(done, total, message):
        told.append([done, total, message])

    async with Client(place(words), mode=era, message_handler=ear) as client:
        seen = {"protocol": client.protocol_version, "server": client.server_info.name, "tools": await names(client)}
        seen["echo"] = text(await client.call_tool("everything_echo", {"message": "hi"}))
        structured = await client.call_tool("everything_get-structured-content", {"location": "Chicago"})
        seen["structured"] = structured.structured_content
        image = await client.call_tool("everything_get-tiny-image", {})
        seen["kinds"] = [block.type for block in image.content]
        seen["error"] = await failure(client, "everything_get-resource-reference", {"resourceType": "Text", "resourceId": 0.5})
        seen["wrong"] = await failure(client, "everything_get-sum", {"a": "x", "b": 2})
        try:
            await client.call_tool("nobody_has_this", {})
        except MCPError as error:
            seen["unknown"] = error.error.code
        slow = {"duration": 0.3, "steps": 3}
        seen["slow"] = text(await client.call_tool("everything_trigger-long-running-operation", slow, progress_handler=progress))
        seen["progress"] = told
        zones = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Shanghai"}
        seen["time"] = (await client.call_tool("time_convert_time", zones)).structured_content["time_difference"]
        seen["later"] = text(await client.call_tool("later", {}))
        print("a call waits;", file=sys.stderr, flush=True)
        seen["held"] = text(await client.call_tool("held", {}))
        ear.heard.clear()
        open(os.environ["ADD"], "w").write(os.environ["ADDED"])
        while "added" not in seen.setdefault("then", []):
            await ear.heard.wait()
            ear.heard.clear()
            seen["then"] = await names(client)
    print(json.dumps(seen))


asyncio.run(asyncio.wait_for(main(sys.argv[1], sys.argv[2:]), 100))
