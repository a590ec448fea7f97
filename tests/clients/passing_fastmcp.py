"""Uses prompts, resources and servers' requests with the client of FastMCP.

    passing_fastmcp.py MODE URL
    passing_fastmcp.py MODE COMMAND ARGUMENT...

MODE is `legacy`, `auto` or a revision. Prints the results as one JSON object.
"""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from mcp.types import PromptReference

ROOT = "file:///scene/folder"


async def play(mode, server):
    asked = []

    async def elicit(message, response_type, params, context):
        asked.append(message)
        return {"text": "Ada"}

    async def sample(messages, params, context):
        asked.append(messages[0].content.text)
        return "tea"

    async with Client(
        server,
        mode=mode,
        roots=[ROOT],
        elicitation_handler=elicit,
        sampling_handler=sample,
    ) as client:

        async def call(tool):
            arguments = {"tool_name": f"any/{tool}", "tool_input": {}}
            result = await client.call_tool("execute_dynamic_tool", arguments)
            return json.loads(result.content[0].text)

        prompt = await client.get_prompt("any__greet", {"name": "Bob"})
        resource = await client.read_resource("note://one")
        part = await client.read_resource("note://two/part")
        reference = PromptReference(type="ref/prompt", name="any__greet")
        completion = await client.complete(reference, {"name": "name", "value": "b"})
        return {
            "prompts": [it.name for it in await client.list_prompts()],
            "prompt": prompt.messages[0].content.text,
            "resources": [str(it.uri) for it in await client.list_resources()],
            "templates": [it.uri_template for it in await client.list_resource_templates()],
            "resource": resource[0].text,
            "part": part[0].text,
            "completion": completion.values,
            "elicited": await call("ask"),
            "sampled": await call("sample"),
            "roots": await call("roots"),
            "asked": asked,
        }


def main():
    mode, target, *arguments = sys.argv[1:]
    server = target
    if not target.startswith("http"):
        server = StdioTransport(target, arguments, keep_alive=False)
    print(json.dumps(asyncio.run(play(mode, server))))


main()
