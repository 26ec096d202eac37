"""A tool that runs another agent.

`scope=use.scope` lets the parent's cancel and deadline reach the child, `use.charge` counts the child's tokens in the
parent's run. Prints:

    parent: The translation is: Hei, verden.
    tokens: 34 (child's included)
"""

from gotato_py import Agent, ToolContext, ToolError, Usage, tool
from gotato_testkit import ScriptedModel, call, say


@tool(effect="read")
def translate(text: str, use: ToolContext[None]) -> str:
    """Translates a text to Norwegian, by an agent of its own."""
    model = ScriptedModel([say("Hei, verden.", usage=Usage(8, 4))])
    child = Agent(model, instructions="Translate to Norwegian. Answer with the translation only.")
    result = child.run(text, scope=use.scope, check=False)
    use.charge(result.usage)  # also when it failed: the tokens are spent
    if not result.ok:
        raise ToolError(f"no translation: {result.status}")
    return result.text


def main() -> None:
    """A parent that delegates."""
    script = [
        call("translate", text="Hello, world.") + say("", usage=Usage(10, 2)),
        say("The translation is: Hei, verden.", usage=Usage(7, 3)),
    ]
    result = Agent(ScriptedModel(script), tools=[translate]).run("How do you say “Hello, world.” in Norwegian?")
    print(f"parent: {result.text}")
    print(f"tokens: {result.usage.total_tokens} (child's included)")


if __name__ == "__main__":
    main()
