"""Uses prompts, resources and servers' requests with the official Python SDK.

    passing.py MODE URL
    passing.py MODE COMMAND ARGUMENT...

MODE is `legacy`, `auto` or a revision. Prints the results as one JSON object.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters, types

ROOT = "file:///scene/folder"


async def play(mode, server):
    asked = []

    async def elicit(context, params):
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"text": "Ada"})

    async def sample(context, params):
        asked.append(params.messages[0].content.text)
        content = types.TextContent(type="text", text="tea")
        return types.CreateMessageResult(role="assistant", content=content, model="scene")

    async def list_roots(context):
        return types.ListRootsResult(roots=[types.Root(uri=ROOT, name="folder")])

    async with Client(
        server,
        mode=mode,
        elicitation_callback=elicit,
        sampling_callback=sample,
        list_roots_callback=list_roots,
    ) as client:

        async def call(tool):
            arguments = {"tool_name": f"any/{tool}", "tool_input": {}}
            result = await client.call_tool("execute_dynamic_tool", arguments)
            return json.loads(result.content[0].text)

        prompts = await client.list_prompts()
        prompt = await client.get_prompt("any__greet", {"name": "Bob"})
        resources = await client.list_resources()
        templates = await client.list_resource_templates()
        resource = await client.read_resource("note://one")
        part = await client.read_resource("note://two/part")
        reference = types.PromptReference(type="ref/prompt", name="any__greet")
        completion = await client.complete(reference, {"name": "name", "value": "b"})
        return {
            "revision": client.protocol_version,
            "prompts": [it.name for it in prompts.prompts],
            "prompt": prompt.messages[0].content.text,
            "resources": [str(it.uri) for it in resources.resources],
            "templates": [it.uri_template for it in templates.resource_templates],
            "resource": resource.contents[0].text,
            "part": part.contents[0].text,
            "completion": completion.completion.values,
            "elicited": await call("ask"),
            "sampled": await call("sample"),
            "roots": await call("roots"),
            "asked": asked,
        }


def main():
    mode, target, *arguments = sys.argv[1:]
    server = target
    if not target.startswith("http"):
        server = StdioServerParameters(command=target, args=arguments)
    print(json.dumps(asyncio.run(play(mode, server))))


main()
