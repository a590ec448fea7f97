"""A server on FastMCP that asks the user, logs, and reports progress.
Its results are structured.

    on_fastmcp.py
"""

from dataclasses import dataclass

from fastmcp import Context, FastMCP
from mcp.types import SamplingMessage, TextContent

server = FastMCP("fastmcp", instructions="Weather and bookings.")


@dataclass
class Weather:
    """Structured output."""

    city: str
    celsius: float


@dataclass
class Confirmation:
    """What the person fills in."""

    sure: bool
    date: str = "2026-12-24"


@server.tool
async def weather(city: str, context: Context) -> Weather:
    """Tell the weather of a city."""
    await context.report_progress(0.5, 1.0, "half")
    await context.info(f"looking at {city}")
    await context.report_progress(1.0, 1.0, "whole")
    return Weather(city=city, celsius=-1.5)


@server.tool
async def book(date: str, context: Context) -> str:
    """Book a table, once the person is sure."""
    answer = await context.elicit(f"Book {date}?", response_type=Confirmation)
    if answer.action != "accept":
        return answer.action
    return f"sure: {answer.data.sure}, {answer.data.date}"


@server.tool
async def poem(topic: str, context: Context) -> str:
    """Have the client's model write a poem."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text=topic))
    result = await context.session.create_message(messages=[message], max_tokens=9)
    return result.content.text


@server.tool
async def where(context: Context) -> list[str]:
    """List the folders that the client works in."""
    listed = await context.session.list_roots()
    return [str(root.uri) for root in listed.roots]


@server.prompt(title="Review code")
def review(code: str) -> str:
    """Ask for a review."""
    return f"Review:\n\n{code}"


@server.resource("note://one", name="one")
def one() -> str:
    return "the first"


@server.resource("note://{id}/part", name="part")
def part(id: str) -> str:
    return f"part of {id}"


server.run(show_banner=False)
