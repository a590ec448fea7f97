"""Plays the scene of the three tools with the official Python SDK.

    scene.py MODE GATE URL
    scene.py MODE GATE COMMAND ARGUMENT...

MODE is `legacy`, `auto` or a revision. For each progress notification it creates the file GATE plus
its number. Prints the results as one JSON object.
"""

import asyncio
import json
import pathlib
import sys

from mcp import Client, StdioServerParameters


async def play(mode, gate, server):
    progress = []

    async def on_progress(done, total, message):
        progress.append([int(done), int(total)])
        pathlib.Path(f"{gate}{int(done)}").touch()

    def text(result):
        return "\n".join(block.text for block in result.content)

    async with Client(server, mode=mode) as client:
        tools = await client.list_tools()
        found = await client.call_tool("search_tools", {"query": "work"})
        done = await client.call_tool(
            "execute_dynamic_tool",
            {"tool_name": "any/work", "tool_input": {}},
            progress_callback=on_progress,
        )
        wrong = await client.call_tool(
            "execute_dynamic_tool", {"tool_name": "any/wrok", "tool_input": {}}
        )
        return {
            "revision": client.protocol_version,
            "instructions": client.instructions,
            "tools": [tool.name for tool in tools.tools],
            "found": text(found),
            "done": text(done),
            "progress": progress,
            "wrong": text(wrong),
            "wrong_is_error": wrong.is_error,
        }


def main():
    mode, gate, target, *arguments = sys.argv[1:]
    server = target
    if not target.startswith("http"):
        server = StdioServerParameters(command=target, args=arguments)
    print(json.dumps(asyncio.run(play(mode, gate, server))))


main()
