"""Makes a call during which the daemon is killed, with the official Python SDK or FastMCP.

    killed.py SDK GATE URL

SDK is `mcp` or `fastmcp`. On progress of the call it creates the file GATE; once the file
GATE.killed exists, it makes three calls of another tool. Prints the results as one JSON object.
"""

import asyncio
import json
import pathlib
import sys


def connect(sdk, url):
    if sdk == "fastmcp":
        from fastmcp import Client
    else:
        from mcp import Client
    return Client(url, mode="legacy")


async def play(sdk, gate, url):
    async def on_progress(done, total, message):
        pathlib.Path(gate).touch()

    async with connect(sdk, url) as client:

        async def call(tool, number, **more):
            arguments = {"tool_name": f"any/{tool}", "tool_input": {"number": number}}
            if sdk == "fastmcp":
                more = {"raise_on_error": False} | {
                    {"progress_callback": "progress_handler"}[key]: value
                    for key, value in more.items()
                }
            result = await client.call_tool("execute_dynamic_tool", arguments, **more)
            return [bool(result.is_error), result.content[0].text]

        long = asyncio.create_task(call("slow", 0, progress_callback=on_progress))
        while not pathlib.Path(f"{gate}.killed").exists():
            await asyncio.sleep(0.05)
        quick = [await call("quick", number) for number in (1, 2, 3)]
        return {"quick": quick, "long": await long}


print(json.dumps(asyncio.run(play(*sys.argv[1:]))))
