"""The official SDKs, where they are installed (the extra "sdk"): their types, checked to the last member.

Everything of theirs is `Any` here, since the type checkers have to pass without them as well.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest


def sdk(module: str) -> Any:
    """A module of an SDK; the test is skipped where it is not installed."""
    return pytest.importorskip(module, reason=f'{module.partition(".")[0]} is not installed: pip install -e ".[sdk]"')


@cache
def validator(kind: object) -> Any:
    """What checks plain values against a type of an SDK; making one takes long.

    As pydantic reads such a type, it looks at no element of an `Iterable` before somebody asks for it, and passes over
    keys that a TypedDict does not have: nearly every request would do. Here all elements are looked at, and no key may
    be unknown.
    """
    schema = sdk("pydantic").TypeAdapter(kind).core_schema
    return sdk("pydantic_core").SchemaValidator(_strict(schema))


def check(kind: object, value: object) -> None:
    """Fails for a value that the SDK's type does not allow, with what pydantic says of the deepest places.

    Of all the members of a union that a value is none of, the one that comes nearest gets deepest.
    """
    try:
        validator(kind).validate_python(value)
    except sdk("pydantic").ValidationError as error:
        told = sorted(error.errors(), key=lambda each: len(each["loc"]), reverse=True)
        lines = [f"{each['loc'][-6:]}: {each['msg']}, not {each['input']!r}" for each in told[:5]]
        pytest.fail("\n".join(lines))


def _strict(schema: Any) -> Any:
    """The schema of pydantic's core, with lists for generators and closed TypedDicts."""
    if isinstance(schema, dict):
        made = {name: _strict(each) for name, each in schema.items()}
        if schema.get("type") == "generator":
            made["type"] = "list"
        elif schema.get("type") == "typed-dict" and made.get("extra_behavior") != "allow":
            made["extra_behavior"] = "forbid"
        return made
    return type(schema)(map(_strict, schema)) if isinstance(schema, list | tuple) else schema
