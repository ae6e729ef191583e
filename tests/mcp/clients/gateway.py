"""What servers behind Helve have besides tools, as a client of the Python SDK sees it, told as one JSON object. Takes what python_sdk.py takes.

In the older era the question of a server is answered.
"""

import asyncio
import json
import sys

import mcp_types as types
from mcp.client import Client

from python_sdk import names, place, text


async def main(era, words):
    asked, told = [], []

    async def answer(context, params):
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"name": "Ada", "check": True})

    async def progress(done, total, message):
        told.append([done, total])

    # What a server can do is told once, so those behind must be connected before.
    async with Client(place(words)) as client:
        await names(client)
    async with Client(place(words), mode=era, elicitation_callback=answer) as client:
        seen = {"protocol": client.protocol_version}
        seen["capabilities"] = sorted(name for name, value in client.server_capabilities.model_dump(exclude_none=True).items())
        seen["tools"] = await names(client)
        seen["resources"] = sorted(str(resource.uri) for resource in (await client.list_resources()).resources)
        seen["templates"] = sorted(template.uri_template for template in (await client.list_resource_templates()).resource_templates)
        read = await client.read_resource("demo://resource/dynamic/text/7")
        seen["resource"] = read.contents[0].text
        try:
            await client.read_resource("demo://nowhere")
        except Exception as error:
            seen["no_resource"] = str(error)
        seen["prompts"] = sorted(prompt.name for prompt in (await client.list_prompts()).prompts)
        prompt = await client.get_prompt("everything_args-prompt", {"city": "Lyon"})
        seen["prompt"] = prompt.messages[0].content.text
        reference = types.PromptReference(type="ref/prompt", name="everything_completable-prompt")
        completed = await client.complete(reference, {"name": "department", "value": "S"})
        seen["completion"] = completed.completion.values
        slow = {"duration": 0.3, "steps": 3}
        await client.call_tool("everything_trigger-long-running-operation", slow, progress_callback=progress)
        seen["progress"] = told
        failed = await client.call_tool("everything_get-resource-reference", {"resourceType": "Text", "resourceId": 0.5})
        seen["error"] = {"is_error": failed.is_error, "text": text(failed)}
        if era == "legacy":
            seen["elicited"] = text(await client.call_tool("everything_trigger-elicitation-request", {}))
            seen["asked"] = asked
    print(json.dumps(seen))


asyncio.run(asyncio.wait_for(main(sys.argv[1], sys.argv[2:]), 100))
