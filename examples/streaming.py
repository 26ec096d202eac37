"""The answer as it comes, and what happens besides text.

`stream` runs in the thread that iterates it. Leaving the `with` early cancels the run. Prints:

    → weather
    ← ok
    Oslo is sunny. Bergen is rainy.
    completed after 2 turns
"""

from gotato_py import Agent, MessageUpdate, ToolExecutionEnd, ToolExecutionStart
from gotato_testkit import DemoModel


def weather(city: str) -> str:
    """The weather in a city."""
    return f"{city} is {'rainy' if city == 'Bergen' else 'sunny'}"


def main() -> None:
    """First all events of a run, then only the text of another."""
    agent = Agent(DemoModel(), tools=[weather])
    with agent.stream("What is the weather in Oslo?") as stream:
        for event in stream:
            match event:
                case ToolExecutionStart():
                    print(f"→ {event.name}")
                case ToolExecutionEnd():
                    print(f"← {event.status}")
                case MessageUpdate():
                    print(event.text, end="", flush=True)
                case _:
                    pass
    with agent.stream("And the weather in Bergen?") as stream:
        print(end=" ")
        for piece in stream.text:
            print(piece, end="", flush=True)
        print()
        print(f"{stream.result.status} after {stream.result.metrics.turns} turns")


if __name__ == "__main__":
    main()
