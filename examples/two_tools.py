"""Two typed functions as tools, and a limit on time.

The schema of each tool comes from its annotations and docstring; arguments arrive checked and converted. Prints:

    It is 8 °C and dry in Oslo. Dinner is at Smalhans, 2024-06-12.
    2 turns, 2 tool calls
"""

from dataclasses import dataclass
from datetime import date
from typing import Literal

from gotato_py import Agent, ToolContext, tool
from gotato_testkit import ScriptedModel, call, say


@dataclass
class Table:
    """A table in a restaurant."""

    place: str
    day: date
    seats: int = 2


def weather(city: str, unit: Literal["C", "F"] = "C") -> str:
    """The weather in a city.

    Args:
        city: The city's name.
        unit: Celsius or Fahrenheit.
    """
    return f"8 °{unit} and dry in {city}"


@tool(effect="write_external")
def book(table: Table, use: ToolContext[None]) -> dict[str, object]:
    """Books a table. `use.key` is the same after a restart: the restaurant can tell a repeated booking by it."""
    return {"booked": table.place, "day": table.day, "reference": use.key}


def main() -> None:
    """One run: the model asks for both tools at once, then answers."""
    # With a provider it is connect("openai:gpt-5") of gotato_gateway; nothing else changes.
    model = ScriptedModel(
        [
            call("weather", city="Oslo") + call("book", table={"place": "Smalhans", "day": "2024-06-12"}),
            say("It is 8 °C and dry in Oslo. Dinner is at Smalhans, 2024-06-12."),
        ]
    )
    agent = Agent(model, instructions="You plan evenings.", tools=[weather, book])
    result = agent.run("Plan my evening in Oslo.", timeout=60)
    print(result.text)
    print(f"{result.metrics.turns} turns, {result.metrics.tool_calls} tool calls")


if __name__ == "__main__":
    main()
