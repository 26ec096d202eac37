"""The models that need no script: echo and demo."""

from typing import Literal

import pytest

from gotato_py import (
    Agent,
    Cancelled,
    Done,
    ImagePart,
    ModelOptions,
    ModelRequest,
    Scope,
    TextDelta,
    ToolCallReady,
    ToolError,
    ToolSpec,
    Usage,
    UserMessage,
)
from gotato_testkit import DemoModel, EchoModel, FakeTool, ManualClock, outline


def weather(city: str) -> str:
    """The weather in a city."""
    if city == "Mordor":
        raise ToolError("nobody measures there")
    return f"{city} is sunny"


def calculate(expression: str) -> str:
    """The value of an expression."""
    return f"{expression} is some number"


def now() -> str:
    """The time."""
    return "noon"


def add(a: int, b: int) -> int:
    """Two numbers together."""
    return a + b


def scale(factor: float, unit: Literal["metre", "foot"] = "metre", loud: bool = False) -> str:
    """Scales something."""
    return f"scaled {factor} {unit}"


def search_notes(query: str) -> list[str]:
    """Looks for notes."""
    return [query]


TOOLS = [weather, calculate, now, add, scale, search_notes]


def test_echo_repeats_the_last_user_message() -> None:
    """Echo answers with what the user said last, word by word."""
    agent = Agent(EchoModel())
    agent.run("one")
    with agent.stream("two  words\n") as stream:
        assert list(stream.text) == ["two  ", "words\n"]


def test_echo_answers_a_message_without_text() -> None:
    """Where there is no text to repeat, it says so: an empty answer would be none."""
    assert Agent(EchoModel()).run(ImagePart(data=b"x", media_type="image/png")).text == "(no text)"
    assert next(EchoModel().stream(ModelRequest(), Scope())) == TextDelta("(no ")


@pytest.mark.parametrize(
    ("prompt", "calls"),
    [
        ("What is the weather in Oslo?", ['weather(city="Oslo")']),
        ("is it nice in oslo", ['weather(city="oslo")']),
        ("What is the weather in New York, Rome and Rio de Janeiro?",
         ['weather(city="New York")', 'weather(city="Rome")', 'weather(city="Rio de Janeiro")']),
        ("How warm is it in Oslo? And what is 17 * 23?", ['weather(city="Oslo")', 'calculate(expression="17 * 23")']),
        ("What is 1,000 times 3?", ['calculate(expression="1000 * 3")']),
        ("12 divided by 4 and 1 PLUS 2", ['calculate(expression="12 / 4")', 'calculate(expression="1 + 2")']),
        ("2+2", ['calculate(expression="2+2")']),
        ("(3 + 4) * 2, then 2 ** 10.", ['calculate(expression="(3 + 4) * 2")', 'calculate(expression="2 ** 10")']),
        ("What time is it?", ["now()"]),
        ('Search for "lost keys".', ['search_notes(query="lost keys")']),
        ("scale by 2.5 foot", ['scale(factor=2.5', 'unit="foot")']),
        ("What is the weather in Oslo? Oslo weather?", ['weather(city="Oslo")']),
        ("Hello!", []),
        ("What is the weather?", []),
    ],
)  # fmt: skip
def test_the_demo_model_finds_the_calls(prompt: str, calls: list[str]) -> None:
    """It understands places, arithmetic, quotations and numbers, several questions in one prompt, each once."""
    agent = Agent(DemoModel(), tools=TOOLS)
    agent.run(prompt)
    line = outline(agent.transcript.messages, width=1000)[1]
    found = line.partition("[")[2].rstrip("]")
    assert [call.split(" #")[0] for call in found.split(", ") if call] == calls


def test_numbers_may_stand_on_both_sides_of_an_and() -> None:
    """A call whose values are in two clauses is found as well."""
    assert Agent(DemoModel(), tools=TOOLS).run("add 3 and 4").text == "add(a=3, b=4): 7."


def test_the_demo_model_makes_all_calls_in_one_answer() -> None:
    """Several questions are several calls of one answer, told together in the next."""
    agent = Agent(DemoModel(), tools=TOOLS)
    result = agent.run("What is the weather in Oslo, and what is 17 * 23?")
    assert result.text == "Oslo is sunny. 17 * 23 is some number."
    assert (result.metrics.turns, result.metrics.tool_calls) == (2, 2)
    assert result.usage.total_tokens > 0


def test_the_demo_model_tells_what_did_not_work() -> None:
    """A failed call is part of the answer, with the tool's own words."""
    assert Agent(DemoModel(), tools=TOOLS).run("The weather in Mordor?").text == (
        'weather(city="Mordor") did not work: nobody measures there.'
    )


def test_the_demo_model_says_when_nothing_fits() -> None:
    """Without a fitting tool it names those that it has; without any, it says that."""
    assert Agent(DemoModel(), tools=[weather, now]).run("Sing!").text == (
        "I am a demo model, and no tool fits that. I know now(), weather(city)."
    )
    assert "without tools" in Agent(DemoModel()).run("Sing!").text
    picture = ImagePart(data=b"x", media_type="image/png")
    assert "no tool fits" in Agent(DemoModel(), tools=[now]).run(picture).text
    assert isinstance(next(DemoModel().stream(ModelRequest(), Scope())), TextDelta)


def test_the_demo_model_takes_tools_of_any_schema() -> None:
    """Schemas without properties, or with `true` for one, do no harm."""
    odd = FakeTool("odd", "it ran", schema={"type": "object", "properties": {"x": True, "y": {"type": "array"}}})
    assert Agent(DemoModel(), tools=[odd, FakeTool("bare", "it did")]).run("odd, bare").text == "it ran. it did."


def test_a_very_long_prompt_takes_no_time() -> None:
    """Only the beginning of an endless prompt is read, so that no pattern runs away."""
    endless = "(" * 50_000 + "1 " * 50_000 + "A " * 50_000
    assert "no tool fits" in Agent(DemoModel(), tools=TOOLS).run(endless).text


def test_each_question_is_answered_by_its_own_calls() -> None:
    """A later question does not repeat the results of an earlier one."""
    agent = Agent(DemoModel(), tools=TOOLS)
    agent.run("The weather in Oslo?")
    assert agent.run("And what time is it?").text == "now(): noon."


def test_a_model_without_tools_allowed_calls_none() -> None:
    """`tool_choice="none"` is respected."""
    agent = Agent(DemoModel(), tools=TOOLS, model_options=ModelOptions(tool_choice="none"))
    assert agent.run("The weather in Oslo?").metrics.tool_calls == 0


def test_the_demo_model_is_deterministic_and_counts_words() -> None:
    """The same request gets the same events; usage counts words."""
    request = ModelRequest("Be brief.", (UserMessage("weather in Oslo"),), (ToolSpec("weather", input_schema={
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}),))  # fmt: skip
    first = list(DemoModel().stream(request, Scope()))
    assert first == list(DemoModel().stream(request, Scope()))
    assert isinstance(first[1], ToolCallReady)
    assert isinstance(first[-1], Done)
    assert first[-1].usage == Usage(5, 1)


def test_a_delay_takes_time_between_words_and_can_be_cancelled() -> None:
    """`delay` waits by the scope's clock; an ended scope ends the answer."""
    clock = ManualClock()
    words = list(DemoModel(delay=0.5).stream(ModelRequest(messages=(UserMessage("Hi"),)), Scope(clock=clock)))
    assert clock.monotonic() == 0.5 * (len(words) - 1)
    scope = Scope()
    scope.cancel()
    for model in (DemoModel(), EchoModel()):
        with pytest.raises(Cancelled):
            list(model.stream(ModelRequest(messages=(UserMessage("Hi"),)), scope))
