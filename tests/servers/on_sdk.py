"""A server on the official Python SDK that asks the user, logs, and reports progress.
Its results are structured.

    on_sdk.py
"""

from typing import Annotated

from mcp.server.mcpserver import (
    AcceptedElicitation,
    Context,
    Elicit,
    ElicitationResult,
    MCPServer,
    Resolve,
    Sample,
)
from mcp.types import CreateMessageResult, SamplingMessage, TextContent
from pydantic import BaseModel, Field

server = MCPServer("sdk", instructions="Weather and bookings.")


class Weather(BaseModel):
    """Structured output."""

    city: str
    celsius: float = Field(description="Degrees")


class Confirmation(BaseModel):
    """What the person fills in."""

    sure: bool = Field(description="Book it?")
    date: str = Field(default="2026-12-24", description="Another date")


@server.tool()
async def weather(city: str, context: Context) -> Weather:
    """Tell the weather of a city."""
    await context.report_progress(0.5, 1.0, "half")
    await context.info(f"looking at {city}")
    await context.report_progress(1.0, 1.0, "whole")
    return Weather(city=city, celsius=-1.5)


async def confirm(date: str) -> Elicit[Confirmation]:
    return Elicit(f"Book {date}?", Confirmation)


@server.tool()
async def book(
    date: str, answer: Annotated[ElicitationResult[Confirmation], Resolve(confirm)]
) -> str:
    """Book a table, once the person is sure."""
    match answer:
        case AcceptedElicitation(data=data):
            return f"sure: {data.sure}, {data.date}"
        case other:
            return type(other).__name__


async def write(topic: str) -> Sample:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=topic))
    return Sample([message], max_tokens=9)


@server.tool()
async def poem(topic: str, written: Annotated[CreateMessageResult, Resolve(write)]) -> str:
    """Have the client's model write a poem."""
    return written.content.text


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


server.run()
