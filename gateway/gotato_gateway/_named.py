"""A model's optional members, read with a default (`gotato_py.Model`)."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Protocol, cast

from gotato_py import Model, RunResult

CostOf = Callable[[RunResult[Any]], Decimal | None]  # Any: a run may come to any output


class NamedModel(Model, Protocol):
    """A Model that says what it is called and what it can do, as all of this package do."""

    @property
    def name(self) -> str:
        """What it is called ("groq:llama-3.3-70b")."""
        ...

    @property
    def capabilities(self) -> frozenset[str]:
        """What it can do beyond text and tools ("images", "response_schema")."""
        ...


def name_of(model: Model) -> str:
    """What it is called, else the name of its type."""
    name = getattr(model, "name", "")
    return name if isinstance(name, str) and name else type(model).__name__


def capabilities_of(model: Model) -> frozenset[str]:
    """What it can do beyond text and tools."""
    return frozenset(getattr(model, "capabilities", ()))


def provider_of(model: Model) -> str:
    """The service that it asks, where it says so (adapters do)."""
    provider = getattr(model, "provider", "")
    return provider if isinstance(provider, str) else ""


def cost_of_model(model: Model) -> CostOf | None:
    """What prices its runs, where it has such a member."""
    found: object = getattr(model, "cost_of", None)
    return cast("CostOf", found) if callable(found) else None
