"""Makes many concurrent calls in one session, some of which ask the user, with the official
Python SDK.

    asking.py MODE CALLS URL
    asking.py MODE CALLS COMMAND ARGUMENT...

MODE is `legacy`, `auto` or a revision. Every fifth call is one of `any/ask`, the others are of
`any/echo`. Prints one JSON object: the text of each result, and the number of questions.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters, types


async def play(mode, calls, server):
    asked = 0

    async def elicit(context, params):
        nonlocal asked
        asked += 1
        # A user answers late; meanwhile other calls end, and so do their streams.
        await asyncio.sleep(0.02)
        return types.ElicitResult(action="accept", content={"text": "Ada"})

    async with Client(server, mode=mode, elicitation_callback=elicit) as client:

        async def call(n):
            tool = "any/ask" if n % 5 == 0 else "any/echo"
            arguments = {"tool_name": tool, "tool_input": {"n": n}}
            result = await client.call_tool("execute_dynamic_tool", arguments)
            return "\n".join(block.text for block in result.content)

        texts = await asyncio.gather(*(call(n) for n in range(calls)))
        return {"texts": texts, "asked": asked}


def main():
    mode, calls, target, *arguments = sys.argv[1:]
    server = target
    if not target.startswith("http"):
        server = StdioServerParameters(command=target, args=arguments)
    print(json.dumps(asyncio.run(play(mode, int(calls), server))))


main()
