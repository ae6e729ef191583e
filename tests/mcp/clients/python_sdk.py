"""Helve's server as a client of the Python SDK sees it: one walk through it, told as one JSON object.

python_sdk.py ERA URL, or python_sdk.py ERA COMMAND ARGUMENT...; the file named by ADD is written while the client listens to changes.
"""

import asyncio
import json
import os
import sys

import mcp_types as types
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.shared.exceptions import MCPError


def place(words):
    return words[0] if words[0].startswith("http") else StdioServerParameters(command=words[0], args=words[1:], env=dict(os.environ))


def text(result):
    return "\n".join(block.text for block in result.content if block.type == "text")


async def hear_of_change(client, heard):
    """Writes a tool's file, and waits until the server has told that its list has changed, and the tool is there."""

    def write():
        open(os.environ["ADD"], "w").write(os.environ["ADDED"])

    if client.protocol_version < "2026":
        heard.clear()
        write()
        while True:
            await heard.wait()
            heard.clear()
            if "added" in (found := await names(client)):
                return found
    async with client.listen(tools_list_changed=True) as changes:
        write()
        async for _ in changes:
            if "added" in (found := await names(client)):
                return found


async def names(client):
    """The names of the tools, once the servers behind Helve are connected."""
    while True:
        found = sorted(tool.name for tool in (await client.list_tools()).tools)
        if {"everything_echo", "time_convert_time"} <= set(found):
            return found
        await asyncio.sleep(0.1)


async def main(era, words):
    told, heard = [], asyncio.Event()

    async def progress(done, total, message):
        told.append([done, total, message])

    async def handle(message):
        if isinstance(message, types.ToolListChangedNotification):
            heard.set()

    async with Client(place(words), mode=era, message_handler=handle) as client:
        seen = {"protocol": client.protocol_version, "server": client.server_info.name, "tools": await names(client)}
        seen["echo"] = text(await client.call_tool("everything_echo", {"message": "hi"}))
        structured = await client.call_tool("everything_get-structured-content", {"location": "Chicago"})
        seen["structured"] = structured.structured_content
        image = await client.call_tool("everything_get-tiny-image", {})
        seen["kinds"] = [block.type for block in image.content]
        failed = await client.call_tool("everything_get-resource-reference", {"resourceType": "Text", "resourceId": 0.5})
        seen["error"] = {"is_error": failed.is_error, "text": text(failed)}
        wrong = await client.call_tool("everything_get-sum", {"a": "x", "b": 2})
        seen["wrong"] = {"is_error": wrong.is_error, "text": text(wrong)}
        try:
            await client.call_tool("nobody_has_this", {})
        except MCPError as error:
            seen["unknown"] = error.error.code
        slow = {"duration": 0.3, "steps": 3}
        seen["slow"] = text(await client.call_tool("everything_trigger-long-running-operation", slow, progress_callback=progress))
        seen["progress"] = told
        zones = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Shanghai"}
        seen["time"] = (await client.call_tool("time_convert_time", zones)).structured_content["time_difference"]
        seen["later"] = text(await client.call_tool("later", {}))
        print("a call waits;", file=sys.stderr, flush=True)
        seen["held"] = text(await client.call_tool("held", {}))
        seen["then"] = await hear_of_change(client, heard)
    print(json.dumps(seen))


if __name__ == "__main__":
    asyncio.run(asyncio.wait_for(main(sys.argv[1], sys.argv[2:]), 100))
