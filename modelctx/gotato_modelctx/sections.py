"""Sections: text between tags, so that the model can tell what is what, and no text can close its own tag."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gotato_py import InvalidArgument

from ._arguments import is_sequence

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_PANEL = "panel"
"""The kernel's own tag, around all of a panel."""

_IN_ATTRS = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": " ", "\r": " "})


@dataclass(frozen=True, slots=True)
class Section:
    """A text with a tag around it, and attributes that say where it comes from: `<rules path="AGENTS.md">…</rules>`.

    `tag` and the names of `attrs` are letters, digits, "_", "-" and ".". A section whose text is blank is left out.
    Raises `InvalidArgument` for anything else.
    """

    tag: str
    text: str
    attrs: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        check_tag("Section.tag", self.tag)
        if not isinstance(self.text, str):
            raise InvalidArgument(f"Section.text must be a str, not {type(self.text).__name__}")
        if not isinstance(self.attrs, Mapping):
            raise InvalidArgument(f"Section.attrs must be a mapping of str to str, not {type(self.attrs).__name__}")
        for name, given in self.attrs.items():
            check_tag("Section.attrs: a name", name)
            if not isinstance(given, str):
                raise InvalidArgument(f"Section.attrs[{name!r}] must be a str, not {type(given).__name__}")

    def __hash__(self) -> int:
        return hash((self.tag, self.text, frozenset(self.attrs.items())))


Sections = Section | Sequence[Section] | None
"""What a source of sections gives: one, several, or none this time."""

SectionSource = Callable[[], Sections]
"""Asked anew for each request, in the thread of the run. What it raises fails the run. A source whose text changes all
the time has an attribute `changes = True`: `with_static` refuses it."""

SectionLike = Section | SectionSource


def check_tag(where: str, given: object) -> None:
    """Raises `InvalidArgument` for what is no name of a tag or an attribute."""
    if not isinstance(given, str) or _NAME.fullmatch(given) is None:
        raise InvalidArgument(f'{where} must be a str of letters, digits, "_", "-" and ".", and begin with a letter')


def render_sections(sections: Section | Sequence[Section]) -> str:
    """The sections as text, one after another, a blank line between them; those without text are left out.

    A "<" that would begin or end any of these sections, or a panel, is written as `&lt;`: no text can close its own
    tag, or pass for a section that it is not. Everything else stays as it is, so that code can be read.
    """
    given = as_tuple("render_sections", sections)
    names = sorted({re.escape(section.tag) for section in given} | {_PANEL})
    borders = re.compile(rf"<(?=(?:\s*/\s*)?(?:{'|'.join(names)})(?![\w.-]))", re.IGNORECASE)
    return "\n\n".join([_rendered(section, borders) for section in given if section.text.strip()])


def gather(sources: Sequence[SectionLike]) -> list[Section]:
    """What the sources give now, in their order, without what has no text.

    Raises `InvalidArgument` for a source that gives something else.
    """
    found: list[Section] = []
    for source in sources:
        given = source if isinstance(source, Section) else source()
        if given is not None:
            found.extend([each for each in as_tuple(f"the section source {named(source)}", given) if each.text.strip()])
    return found


def as_tuple(where: str, given: Any) -> tuple[Section, ...]:  # Any: whatever a source gives
    """One section or several, as a tuple. Raises `InvalidArgument` for anything else."""
    if isinstance(given, Section):
        return (given,)
    if is_sequence(given) and all(isinstance(each, Section) for each in given):
        return tuple(given)
    raise InvalidArgument(f"{where}: takes or gives a Section or several, not {named(given)}")


def as_sources(where: str, given: SectionLike | Sequence[SectionLike]) -> tuple[SectionLike, ...]:
    """One source or several, as a tuple. Raises `InvalidArgument` for what is neither a Section nor can be called."""
    several: tuple[Any, ...] = tuple(given) if is_sequence(given) else (given,)  # Any: callers without a type checker
    for index, each in enumerate(several):
        if not isinstance(each, Section) and (isinstance(each, type) or not callable(each)):
            said = "a Section, or something that can be called without arguments and gives one"
            raise InvalidArgument(f"{where}: sections[{index}] must be {said}, not {named(each)}")
    return several


def named(source: object) -> str:
    """What an error calls a source: its own name, or that of its class."""
    name = getattr(source, "__name__", None)
    return name if isinstance(name, str) else type(source).__name__


def _rendered(section: Section, borders: re.Pattern[str]) -> str:
    attrs = "".join([f' {name}="{given.translate(_IN_ATTRS)}"' for name, given in section.attrs.items()])
    text = borders.sub("&lt;", section.text.strip("\n"))
    return f"<{section.tag}{attrs}>\n{text}\n</{section.tag}>"
