"""Builders around builders: sections in the system text, sections in the panel, one builder after another.

What stays the same belongs into the system text, at the start of each request, where a provider's cache keeps it; what
changes from turn to turn belongs into the panel, behind everything that the cache holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gotato_py import ContextBuilder, InvalidArgument, ModelContext, TurnView, replace

from ._context_notes import DROPPED, SECTIONS, Placed, dropped_from, placed_in
from .sections import SectionLike, as_sources, gather, named, render_sections


def with_static(builder: ContextBuilder, sections: SectionLike | Sequence[SectionLike]) -> ContextBuilder:
    """The builder, with sections behind its system text.

    Sources are asked for each request; as long as they give the same, the cacheable prefix stays the same. Raises
    `InvalidArgument` for a source that says that it changes all the time, such as `Time()`: at the start of the request
    it would move everything behind it out of the cache, at each turn. Put it into a panel.
    """
    sources = as_sources("with_static", sections)
    for source in sources:
        if getattr(source, "changes", False) is True:
            said = "it would move the whole request out of the provider's cache; use with_panel"
            raise InvalidArgument(f"with_static: {named(source)} changes all the time: {said}")
    return WithSections(checked_builder("with_static", builder), sources, "system")


def with_panel(builder: ContextBuilder, sections: SectionLike | Sequence[SectionLike]) -> ContextBuilder:
    """The builder, with sections in the panel: on the last message, for one request, never stored."""
    return WithSections(checked_builder("with_panel", builder), as_sources("with_panel", sections), "panel")


@dataclass(frozen=True, slots=True)
class WithSections:
    """What `with_static` and `with_panel` make."""

    builder: ContextBuilder
    sections: tuple[SectionLike, ...]
    place: Literal["system", "panel"]

    def build(self, view: TurnView) -> ModelContext:
        """The context of the inner builder, and the sections as they are now."""
        context = self.builder.build(view)
        found = gather(self.sections)
        if not found:
            return context
        text = render_sections(found)
        notes = {**context.metadata, SECTIONS: (*placed_in(context), *[Placed(self.place, each) for each in found])}
        if self.place == "system":
            return ModelContext(joined(context.system, text), context.messages, context.panel, notes)
        return ModelContext(context.system, context.messages, joined(context.panel, text), notes)


class Chain:
    """Builders one after another: each is shown the system text and the messages that the one before it made.

    Panels add up, in order. An empty chain shows everything, as `full_history` does.
    """

    __slots__ = ("builders",)

    def __init__(self, *builders: ContextBuilder) -> None:
        self.builders: tuple[ContextBuilder, ...] = tuple(
            [checked_builder(f"Chain: builder {index}", each) for index, each in enumerate(builders)]
        )

    def __repr__(self) -> str:
        return f"Chain({', '.join(map(repr, self.builders))})"

    def build(self, view: TurnView) -> ModelContext:
        """The context that the last builder makes."""
        shown, panel = view, ""
        notes: Mapping[str, object] = {}
        for builder in self.builders:
            context = builder.build(shown)
            panel = joined(panel, context.panel)
            notes = _merged(ModelContext(metadata=notes), context)
            if context.messages is not shown.messages or context.system != shown.system:
                shown = replace(shown, system=context.system, messages=context.messages)
        return ModelContext(shown.system, shown.messages, panel, notes)


def joined(first: str, second: str) -> str:
    """Two texts, a blank line between them where both say something."""
    return f"{first}\n\n{second}" if first and second else first or second


def checked_builder(where: str, given: ContextBuilder) -> ContextBuilder:
    """The builder. Raises `InvalidArgument` for what has no method `build`."""
    if isinstance(given, type) or not callable(getattr(given, "build", None)):
        raise InvalidArgument(f"{where}: takes a builder, an object that has a method build, not {named(given)}")
    return given


def _merged(earlier: ModelContext, later: ModelContext) -> Mapping[str, object]:
    """The notes of two builders: what both list is listed in order, for the rest the later one counts."""
    if not earlier.metadata:
        return later.metadata
    notes = {**earlier.metadata, **later.metadata}
    placed = (*placed_in(earlier), *placed_in(later))
    dropped = (*dropped_from(earlier), *dropped_from(later))
    return notes | ({SECTIONS: placed} if placed else {}) | ({DROPPED: dropped} if dropped else {})
