"""The registry alone: what it holds and what it tells."""

from __future__ import annotations

import json
import logging
from types import MappingProxyType

import pytest

from gotato_py import FunctionTool, InvalidArgument, NotFound, Tool, ToolContext, ToolSpec, tool
from gotato_testkit import FakeTool
from gotato_toolregistry import Registry, RegistryChange


def names(tools: tuple[Tool, ...]) -> list[str]:
    """The names of the tools."""
    return [each.spec.name for each in tools]


def weather(city: str) -> str:
    "The weather in a city."
    return f"Sunny in {city}."


# Holding tools


def test_tools_and_functions_are_registered() -> None:
    """A tool stays what it is, a function becomes a tool, and `register` returns it."""
    fake, registry = FakeTool("fake"), Registry()
    assert registry.register(fake) is fake
    made = registry.register(weather)
    assert isinstance(made, FunctionTool)
    assert registry.lookup("weather") is made
    assert made.execute(ToolContext("weather", {"city": "Oslo"})) == "Sunny in Oslo."
    assert names(Registry([weather, fake]).tools()) == ["weather", "fake"]


def test_register_decorates() -> None:
    """As a decorator it keeps the function callable."""
    registry = Registry()

    @registry.register
    def double(number: int) -> int:
        "Doubles."
        return 2 * number

    assert double(4) == 8
    assert registry.active == ("double",)


def test_order_is_that_of_registration(abc: Registry) -> None:
    """Lists are in the order of registration, whatever was activated when."""
    abc.deactivate("a")
    abc.activate("b", "a")
    assert abc.active == ("a", "b", "c")
    assert names(abc.tools()) == names(abc.list()) == ["a", "b", "c"]


def test_only_active_tools_are_offered(abc: Registry) -> None:
    """`tools` and `active` leave out what is inactive; `list` and `lookup` do not."""
    assert names(abc.tools()) == ["a", "c"]
    assert abc.active == ("a", "c")
    assert names(abc.list()) == ["a", "b", "c"]
    assert abc.lookup("b").spec.name == "b"
    assert repr(abc) == "Registry(3 tools, 2 active)"


def test_replacing_keeps_the_place(abc: Registry) -> None:
    """A replaced tool gives its place to the new one, and its being active too only if that is asked for."""
    new = FakeTool("b")
    abc.register(new, replace=True)
    assert abc.lookup("b") is new
    assert abc.active == ("a", "b", "c")
    abc.register(FakeTool("d"), replace=True, active=False)
    assert names(abc.list()) == ["a", "b", "c", "d"]


def test_unregister_takes_out(abc: Registry) -> None:
    """What is unregistered is returned, is gone, and can be registered again, at the end."""
    gone = abc.unregister("a")
    assert abc.active == ("c",)
    with pytest.raises(NotFound):
        abc.lookup("a")
    abc.register(gone)
    assert names(abc.list()) == ["b", "c", "a"]


def test_the_offered_tuple_stays_until_it_changes(abc: Registry) -> None:
    """`tools` returns one and the same object while the active tools are the same, and another one afterwards."""
    before = abc.tools()
    abc.activate("a")
    abc.activate()
    abc.deactivate("b")
    abc.register(FakeTool("d"), active=False)
    abc.unregister("d")
    abc.register(abc.lookup("c"), replace=True)
    assert abc.tools() is before
    abc.deactivate("c")
    assert names(abc.tools()) == ["a"]
    assert names(before) == ["a", "c"], "whoever holds a set keeps it"


def test_a_tool_that_says_something_new_of_itself_is_offered_anew() -> None:
    """Registering the same tool again with another spec is a replacement."""
    fake, seen = FakeTool("a"), list[RegistryChange]()
    registry = Registry([fake])
    before = registry.tools()
    registry.on_change(seen.append)
    fake.spec = ToolSpec("a", "better described")
    registry.register(fake, replace=True)
    assert registry.describe("a")["description"] == "better described"
    assert registry.tools() is not before
    assert [(change.replaced, change.activated) for change in seen] == [(("a",), ())]


# Describing


def test_describe_is_plain_json() -> None:
    """A description is plain JSON data, and the caller's own."""

    @tool(effect="read", sequential=True, timeout=2)
    def find(word: str, limit: int = 3) -> list[str]:
        """Finds words.

        Args:
            word: What to look for.
        """
        return [word] * limit

    registry = Registry([find])
    told = registry.describe("find")
    assert json.loads(json.dumps(told)) == told
    assert told == {
        "name": "find",
        "description": "Finds words.",
        "effect": "read",
        "input_schema": find.spec.input_schema,
        "active": True,
        "sequential": True,
        "timeout": 2.0,
    }
    assert type(told["effect"]) is str
    told["input_schema"].clear()
    registry.deactivate("find")
    assert registry.describe("find")["input_schema"] == find.spec.input_schema
    assert registry.describe("find")["active"] is False


def test_describe_makes_dicts_and_lists_of_everything() -> None:
    """Mappings and tuples inside of a schema are told as JSON's own types."""

    class Word(str):
        __slots__ = ()

    schema = {"type": "object", "properties": MappingProxyType({"a": {"enum": (Word("x"), 1, 2.5, None, True)}})}
    registry = Registry([FakeTool("t", schema=schema)])
    told = registry.describe("t")["input_schema"]
    assert told == {"type": "object", "properties": {"a": {"enum": ["x", 1, 2.5, None, True]}}}
    assert type(told["properties"]["a"]["enum"][0]) is str


# Telling


def test_changes_are_told(abc: Registry) -> None:
    """Every change is told once, with what changed and the tools that are active after it."""
    seen: list[RegistryChange] = []
    abc.on_change(seen.append)
    d = abc.register(FakeTool("d"))
    abc.register(FakeTool("e"), active=False)
    abc.activate("e", "b", "a")
    abc.deactivate("d")
    abc.register(FakeTool("a"), replace=True, active=False)
    abc.unregister("c")
    abc.unregister("d")
    assert seen == [
        RegistryChange(4, added=("d",), activated=("d",), active=("a", "c", "d"), tools=(*seen[0].tools[:2], d)),
        RegistryChange(5, added=("e",), active=("a", "c", "d"), tools=seen[0].tools),
        RegistryChange(6, activated=("b", "e"), active=("a", "b", "c", "d", "e"), tools=seen[2].tools),
        RegistryChange(7, deactivated=("d",), active=("a", "b", "c", "e"), tools=seen[3].tools),
        RegistryChange(8, replaced=("a",), deactivated=("a",), active=("b", "c", "e"), tools=seen[4].tools),
        RegistryChange(9, removed=("c",), deactivated=("c",), active=("b", "e"), tools=seen[5].tools),
        RegistryChange(10, removed=("d",), active=("b", "e"), tools=seen[5].tools),
    ]
    assert seen[-1].tools is abc.tools()
    with pytest.raises(AttributeError):
        seen[0].version = 0  # type: ignore[misc]  # on purpose


def test_what_changes_nothing_is_not_told(abc: Registry) -> None:
    """Activating what is active, or registering the same again, is no change."""
    seen: list[RegistryChange] = []
    abc.on_change(seen.append)
    abc.activate("a", "c")
    abc.deactivate("b")
    abc.register(abc.lookup("b"), replace=True, active=False)
    assert seen == []


def test_listening_ends(abc: Registry) -> None:
    """What `on_change` returned ends it, for that one callback; calling it again does nothing."""
    seen: list[RegistryChange] = []
    ends = [abc.on_change(seen.append), abc.on_change(seen.append)]
    abc.activate("b")
    assert len(seen) == 2
    ends[0]()
    ends[0]()
    abc.deactivate("b")
    assert len(seen) == 3
    with pytest.raises(InvalidArgument, match="callback must be callable, not str"):
        abc.on_change("no callback")  # type: ignore[arg-type]  # on purpose


def test_a_callback_sees_the_change_done_and_may_change(abc: Registry) -> None:
    """A callback finds the registry changed; a change that it makes is told before the first reaches the next one."""
    seen: list[tuple[str, int]] = []

    def follow(change: RegistryChange) -> None:
        assert change.tools is abc.tools()
        seen.append(("first", change.version))
        if "b" in change.activated:
            abc.deactivate("c")

    abc.on_change(follow)
    abc.on_change(lambda change: seen.append(("second", change.version)))
    abc.activate("b")
    assert abc.active == ("a", "b")
    assert seen == [("first", 4), ("first", 5), ("second", 5), ("second", 4)]


def test_a_callback_that_raises_harms_nobody(abc: Registry, caplog: pytest.LogCaptureFixture) -> None:
    """The change stands, the others are told, the caller sees nothing, and one line is logged, without the words."""

    def broken(change: RegistryChange) -> None:
        raise ValueError("secret words")

    seen: list[RegistryChange] = []
    end = abc.on_change(broken)
    abc.on_change(seen.append)
    with caplog.at_level(logging.WARNING, "gotato_toolregistry"):
        abc.activate("b")
        abc.deactivate("b")
    assert len(seen) == 2
    (line,) = caplog.messages
    assert "broken raised ValueError" in line
    assert "secret" not in caplog.text
    end()
    abc.on_change(broken)
    with caplog.at_level(logging.DEBUG, "gotato_toolregistry"):
        abc.activate("b")
    assert "secret words" in caplog.text, "the traceback is there for whoever asks for it"


def test_an_interrupt_in_a_callback_is_raised_after_the_last(abc: Registry) -> None:
    """What is no `Exception` comes out unchanged, once everybody was told."""
    interrupt, seen = KeyboardInterrupt("stop"), list[RegistryChange]()

    def interrupted(change: RegistryChange) -> None:
        raise interrupt

    abc.on_change(interrupted)
    abc.on_change(interrupted)
    abc.on_change(seen.append)
    with pytest.raises(KeyboardInterrupt) as caught:
        abc.activate("b")
    assert caught.value is interrupt
    assert len(seen) == 1
    assert abc.active == ("a", "b", "c")
