"""Everything that users can name, with its signature, as text: `python tests/public_api.py` writes `public_api.txt`.

A change of what is public shows in the diff of that file, and `test_public_api.py` fails until it is written again.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGES = (
    "gotato_py",
    "gotato_gateway",
    "gotato_session",
    "gotato_modelctx",
    "gotato_toolregistry",
    "gotato_testkit",
    "gotato_testkit.contracts",
    "gotato_testkit.fixtures",
    "gotato_testkit.server",
    "gotato_testkit.strategies",
    "gotato_cli",
)
LISTING = Path(__file__).with_name("public_api.txt")
_DEFAULT_METHODS = frozenset({"__init__", "__new__"})
_PROTOCOL_METHODS = frozenset({"__call__", "__enter__", "__exit__", "__iter__", "__next__", "__len__", "__getitem__"})


def listing() -> str:
    """The whole listing."""
    lines: list[str] = []
    for package in PACKAGES:
        lines += [f"# {package}", *_package(package), ""]
    return "\n".join(lines)


def _package(name: str) -> Iterator[str]:
    module = import_module(name)
    public = getattr(module, "__all__", None) or [each for each in vars(module) if _is_own(module, each)]
    for each in sorted(public):
        yield from _described(each, getattr(module, each))


def _is_own(module: ModuleType, name: str) -> bool:
    return not name.startswith("_") and getattr(getattr(module, name), "__module__", "") == module.__name__


def _described(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, type) and issubclass(value, Enum):
        yield f"{name}: {', '.join(str(member.value) for member in value)}"
    elif isinstance(value, type):
        bases = ", ".join(base.__name__ for base in value.__bases__ if base.__name__ not in {"object", "Generic"})
        yield f"{name}{_signature(value)}" + (f"  < {bases}" if bases else "")
        yield from (f"    {line}" for line in _members(value))
    elif hasattr(value, "__args__"):
        yield f"{name}: {_clean(str(value))}"
    elif callable(value):
        yield f"{name}{_signature(value)}"
    else:
        yield f"{name}: {type(value).__name__}"


def _members(owner: type) -> Iterator[str]:
    ours = [base for base in owner.__mro__ if base.__module__.startswith("gotato_")]
    names = {name for base in ours for name in vars(base) if not name.startswith("_") or name in _PROTOCOL_METHODS}
    for name in sorted(names):
        raw = inspect.getattr_static(owner, name)
        if isinstance(raw, property):
            yield f".{name}: {inspect.signature(raw.fget).return_annotation}"  # type: ignore[arg-type]  # it has a getter
        elif isinstance(raw, classmethod | staticmethod) or inspect.isfunction(raw):
            yield f".{name}{_signature(getattr(owner, name))}"
        elif not callable(raw) and type(raw).__name__ not in {"member_descriptor", "getset_descriptor"}:
            yield f".{name}"


def _signature(value: Any) -> str:
    if inspect.isbuiltin(value):  # which versions of Python tell of it differs
        return "(...)"
    try:
        return _clean(str(inspect.signature(value)))
    except (TypeError, ValueError):
        return "(...)"


def _clean(text: str) -> str:
    """The text without what differs between machines and versions of Python."""
    text = re.sub(r"<(?:built-in )?(?:bound )?(?:function|method|class) '?([\w.]+)'?[^>]*>", r"\1", text)
    return re.sub(r" at 0x[0-9a-f]+", "", text)


if __name__ == "__main__":
    LISTING.write_text(listing(), encoding="utf-8")
    sys.stdout.write(f"wrote {LISTING.name}\n")
