"""What the registry refuses: before anything is changed, and saying what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gotato_py import ErrorCode, InvalidArgument, NotFound
from gotato_testkit import FakeTool
from gotato_toolregistry import Registry, RegistryChange


def weather(city: str) -> str:
    "The weather in a city."
    return f"Sunny in {city}."


@pytest.mark.parametrize("operation", ["lookup", "describe", "unregister", "activate", "deactivate"])
def test_unknown_name(abc: Registry, operation: str) -> None:
    """An unknown name is `NotFound` and names the operation; what is no str is `InvalidArgument`."""
    act: Callable[[Any], object] = getattr(abc, operation)
    with pytest.raises(NotFound) as caught:
        act("x")
    assert str(caught.value) == f"Registry.{operation}: no tool is named 'x'; there are 'a', 'b', 'c'"
    assert caught.value.code is ErrorCode.NOT_FOUND
    assert caught.value.operation == f"Registry.{operation}"
    with pytest.raises(InvalidArgument, match=f"Registry.{operation}: a name must be a str, not int"):
        act(1)


def test_near_names_are_told() -> None:
    """`NotFound` names what may have been meant; it stays short whatever was asked for."""
    registry = Registry([FakeTool(f"read_{each}") for each in ("file", "files", "mail")])
    with pytest.raises(NotFound, match=r"did you mean 'read_file' or 'read_files' or 'read_mail'\?"):
        registry.lookup("read_fil")
    with pytest.raises(NotFound) as caught:
        registry.lookup("x" * 10_000)
    assert len(str(caught.value)) < 300
    with pytest.raises(NotFound, match="the registry is empty"):
        Registry().lookup("x")
    with pytest.raises(NotFound, match=r"'t7', \.\.\.$"):
        Registry([FakeTool(f"t{number}") for number in range(9)]).lookup("?")


def test_two_of_one_name() -> None:
    """A second tool of a name is refused, when building too, and the first one stays."""
    first = FakeTool("a")
    registry = Registry([first])
    for second in (FakeTool("a"), first):
        with pytest.raises(InvalidArgument, match=r"there is a tool named 'a' already; .* replace=True"):
            registry.register(second)
    assert registry.list() == (first,)
    with pytest.raises(InvalidArgument, match="named 'weather' already"):
        Registry([weather, weather])


async def later(city: str) -> str:
    """No tool: asynchronous."""
    return city


@pytest.mark.parametrize("given", [3, FakeTool, "tool", later, lambda city: city])
def test_what_is_no_tool(given: Any) -> None:
    """What is no tool is refused by the kernel's own rules."""
    registry = Registry()
    with pytest.raises(InvalidArgument, match=r"^Registry\.register: "):
        registry.register(given)
    assert registry.list() == ()


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"properties": {"a": {"default": object()}}}, "at #/properties/a/default: must be JSON data, not object"),
        ({"enum": [float("nan")]}, "at #/enum/0: must be JSON data, not a number that JSON cannot say"),
        ({"maximum": 10**5000}, "at #/maximum: must be JSON data, not a number that JSON cannot say"),
        ({"properties": {1: True}}, "at #/properties: keys must be str, not int"),
    ],
)
def test_a_schema_that_is_no_json(schema: Any, said: str) -> None:
    """A tool whose schema no provider could be sent is refused, and nothing has changed."""
    registry = Registry()
    with pytest.raises(InvalidArgument) as caught:
        registry.register(FakeTool("t", schema={"type": "object", **schema}))
    assert str(caught.value) == f"the input_schema of tool 't' {said}"
    assert registry.list() == ()


def test_a_schema_that_holds_itself() -> None:
    """A schema that holds itself is refused, not followed."""
    endless: dict[str, Any] = {"type": "object"}
    endless["properties"] = {"self": endless}
    with pytest.raises(InvalidArgument, match="nested too deeply, or holds itself"):
        Registry([FakeTool("t", schema=endless)])


def test_flags_are_booleans() -> None:
    """`active` and `replace` must be booleans."""
    wrong: Any = "no"
    with pytest.raises(InvalidArgument, match="active must be a bool, not str"):
        Registry().register(weather, active=wrong)
    with pytest.raises(InvalidArgument, match="replace must be a bool, not str"):
        Registry().register(weather, replace=wrong)


def test_switching_is_all_or_nothing(abc: Registry) -> None:
    """Where one of several names is unknown, none is switched and nobody is told."""
    seen: list[RegistryChange] = []
    abc.on_change(seen.append)
    with pytest.raises(NotFound):
        abc.activate("b", "x")
    with pytest.raises(NotFound):
        abc.deactivate("a", "x")
    assert abc.active == ("a", "c")
    assert seen == []
