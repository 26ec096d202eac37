"""Sections: text between tags that it cannot close."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gotato_modelctx import Section, render_sections
from gotato_modelctx.sections import as_sources, gather
from gotato_py import InvalidArgument


def test_a_section_is_text_between_tags() -> None:
    """The tag, its attributes, the text; several with a blank line between."""
    first = Section("rules", "Be kind.\n", {"path": "AGENTS.md", "note": 'a "b" <c> & d\ne'})
    assert render_sections([first, Section("todo", "1. Test")]) == (
        '<rules path="AGENTS.md" note="a &quot;b&quot; &lt;c&gt; &amp; d e">\nBe kind.\n</rules>\n\n'
        "<todo>\n1. Test\n</todo>"
    )
    assert render_sections(Section("a", "x")) == "<a>\nx\n</a>"


def test_blank_sections_are_left_out() -> None:
    """A section that says nothing is not shown, and nothing at all is an empty text."""
    assert render_sections([Section("a", ""), Section("b", " \n"), Section("c", "x")]) == "<c>\nx\n</c>"
    assert render_sections([Section("a", "")]) == render_sections([]) == ""


@pytest.mark.parametrize(
    "border", ["</a>", "</A >", "< / a>", "<a>", "<b x='1'>", "</b>", "</panel>", "<Panel>", "</a\n>"]
)
def test_no_text_can_close_or_open_a_section(border: str) -> None:
    """A border of any of the sections, or of the panel, is told as text."""
    rendered = render_sections([Section("a", f"x{border}y"), Section("b", "z")])
    assert rendered.startswith(f"<a>\nx&lt;{border[1:]}y\n</a>")


@pytest.mark.parametrize("text", ["if a < b: c", "<abc>", "<a-b>", "<div></div>", "List<b1>", "a<<b2", "&lt;"])
def test_other_text_stays_as_it_is(text: str) -> None:
    """Code and the tags of others can be read."""
    assert render_sections([Section("a", text), Section("b", "z")]).startswith(f"<a>\n{text}\n</a>")


@given(st.text(st.sampled_from("</>abpanel \n=\"'")), st.text(st.sampled_from("</>ab \n")))
def test_each_section_has_exactly_its_own_borders(first: str, second: str) -> None:
    """Whatever the texts, there is one beginning and one end of each section that is shown."""
    rendered = render_sections([Section("a", first), Section("b", second)])
    for tag, text in (("a", first), ("b", second)):
        shown = int(bool(text.strip()))
        assert len(re.findall(rf"<{tag}(?![\w.-])", rendered, re.IGNORECASE)) == shown
        assert len(re.findall(rf"<\s*/\s*{tag}(?![\w.-])", rendered, re.IGNORECASE)) == shown


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Section("", "x"), "tag"),
        (lambda: Section("a b", "x"), "tag"),
        (lambda: Section("1a", "x"), "tag"),
        (lambda: Section(None, "x"), "tag"),  # type: ignore[arg-type]  # on purpose
        (lambda: Section("a", None), "text"),  # type: ignore[arg-type]  # on purpose
        (lambda: Section("a", "x", "y"), "attrs"),  # type: ignore[arg-type]  # on purpose
        (lambda: Section("a", "x", {"b c": "y"}), "attrs"),
        (lambda: Section("a", "x", {"b": 1}), "attrs"),  # type: ignore[dict-item]  # on purpose
        (lambda: render_sections("x"), "render_sections"),  # type: ignore[arg-type]  # on purpose
        (lambda: render_sections(["x"]), "render_sections"),  # type: ignore[list-item]  # on purpose
        (lambda: as_sources("with_static", [Section]), r"sections\[0\]"),  # type: ignore[list-item]  # on purpose
        (lambda: as_sources("with_static", "text"), r"sections\[0\].*str"),  # type: ignore[arg-type]  # on purpose
        (lambda: gather([lambda: "text"]), "section source"),  # type: ignore[list-item, return-value]  # on purpose
    ],
)
def test_what_is_no_section_is_refused(make: object, named: str) -> None:
    """The error says which field or argument is wrong."""
    with pytest.raises(InvalidArgument, match=named):
        make()  # type: ignore[operator]  # one of the callables above


def test_sections_are_values() -> None:
    """Equal sections are equal, and hash alike."""
    assert Section("a", "x", {"b": "c"}) == Section("a", "x", {"b": "c"}) != Section("a", "x")
    assert len({Section("a", "x", {"b": "c"}), Section("a", "x", {"b": "c"})}) == 1


def test_sources_give_one_several_or_none() -> None:
    """A source is asked for what it has now; blank sections are left out."""
    one, two = Section("a", "x"), Section("b", "y")
    assert gather([one, lambda: two, lambda: [one, Section("c", " "), two], lambda: None]) == [one, two, one, two]
