"""with_static, with_panel and Chain: where sections stand, and what a cache can keep."""

from __future__ import annotations

from pathlib import Path

import pytest

from gotato_modelctx import (
    Chain,
    Json,
    Resource,
    Rules,
    Section,
    SectionLike,
    Text,
    Time,
    Window,
    with_panel,
    with_static,
)
from gotato_modelctx._context_notes import Dropped, Placed, dropped_from, placed_in
from gotato_py import (
    Agent,
    ContextBuilder,
    ContextBuilt,
    InvalidArgument,
    MemoryTranscript,
    ModelContext,
    RunFailed,
    TurnView,
    UserMessage,
    full_history,
    tool,
)
from gotato_testkit import EventRecorder, ManualClock, ScriptedModel, call, say
from gotato_testkit.contracts import ContextBuilderContract


def view(*messages: UserMessage, system: str = "Be brief.") -> TurnView:
    """A view of these messages."""
    return TurnView(system, messages, MemoryTranscript(messages))


class Fixed:
    """A builder that says what it was told to say."""

    def __init__(self, context: ModelContext) -> None:
        self.context = context
        self.seen: list[TurnView] = []

    def build(self, view: TurnView) -> ModelContext:
        """The fixed context."""
        self.seen.append(view)
        return self.context


class TestWithSections(ContextBuilderContract):
    """Sections on top of a builder keep the promises of a context builder."""

    examples = 5

    def make(self) -> ContextBuilder:
        counter = iter(range(1000))
        fixed = with_static(full_history, [Section("rules", "Be kind."), lambda: Section("more", "x")])
        return with_panel(fixed, Text("count", lambda: str(next(counter))))


class TestChain(ContextBuilderContract):
    """A chain of windows and sections does too."""

    examples = 5

    def make(self) -> ContextBuilder:
        return Chain(Window(5), with_static(full_history, Section("rules", "x")), Window(max_tokens=40), Window(2))


def test_static_sections_stand_behind_the_system_text() -> None:
    """In order, a blank line between; without a system text they are the system text."""
    builder = with_static(full_history, [Section("a", "x"), lambda: Section("b", "y")])
    shown = view(UserMessage("Hi"))
    assert builder.build(shown).system == "Be brief.\n\n<a>\nx\n</a>\n\n<b>\ny\n</b>"
    assert builder.build(view(system="")).system == "<a>\nx\n</a>\n\n<b>\ny\n</b>"
    assert builder.build(shown).messages is shown.messages
    assert builder.build(shown).panel == ""


def test_panel_sections_stand_in_the_panel() -> None:
    """Behind what the inner builder put there; the system text and the messages stay."""
    inner = Fixed(ModelContext("s", (UserMessage("Hi"),), "before"))
    context = with_panel(inner, Section("a", "x")).build(view())
    assert (context.system, context.panel) == ("s", "before\n\n<a>\nx\n</a>")
    assert context.messages is inner.context.messages


def test_sections_without_text_change_nothing() -> None:
    """A source that has nothing leaves the context as it was."""
    inner = Fixed(ModelContext("s"))
    assert with_static(inner, [lambda: None, Section("a", " ")]).build(view()) is inner.context
    assert with_panel(inner, ()).build(view()) is inner.context


def test_what_changes_all_the_time_is_refused_in_the_system_text() -> None:
    """The minute in the system text would empty the cache each turn; the day may stand there."""
    with pytest.raises(InvalidArgument, match="with_panel"):
        with_static(full_history, [Section("a", "x"), Time()])
    dated = with_static(full_history, Time(clock=ManualClock(), precision="day"))
    assert "2023-11-14" in dated.build(view()).system


def test_the_prefix_stays_while_nothing_static_changes(tmp_path: Path) -> None:
    """Rules, a resource and JSON in front, the time and a changing text behind: each request goes on from the last."""
    (tmp_path / "AGENTS.md").write_text("Be kind.", "utf-8")
    (tmp_path / "notes").write_text("one", "utf-8")
    clock, counter = ManualClock(), iter(range(100))
    fixed: list[SectionLike] = [
        Rules(tmp_path, root=tmp_path),
        Resource("notes", tmp_path / "notes"),
        Json("data", {"b": 1, "a": 2}),
    ]
    builder = with_panel(with_static(full_history, fixed), [Time(clock=clock), Text("n", lambda: str(next(counter)))])
    model = ScriptedModel([call("wait")] * 4 + [say("Done")])

    @tool
    def wait() -> str:
        """Takes a minute."""
        clock.advance(60)
        if clock.monotonic() == 180:
            (tmp_path / "notes").write_text("two", "utf-8")
        return f"{clock.monotonic()}"

    Agent(model, instructions="Be brief.", tools=[wait], context_builder=builder, clock=clock).run("Hi")
    for before, after in zip(model.requests, model.requests[1:], strict=False):
        kept = len(before.messages) - 1
        assert tuple(after.messages[:kept]) == tuple(before.messages[:kept])
    assert [request.system == model.requests[0].system for request in model.requests] == [True] * 3 + [False] * 2
    panels = [request.messages[-1].text.partition("<panel>")[2] for request in model.requests]
    assert len(set(panels)) == 5
    assert all("<panel>" not in message.text for request in model.requests for message in request.messages[:-1])


def test_the_hash_of_the_prefix_tells_that_it_stays() -> None:
    """The same messages again, a minute later: the same `prefix_hash`, whatever the panel says."""
    clock = ManualClock()
    hashes: list[str] = []
    for _ in range(2):
        clock.advance(60)
        recorder = EventRecorder()
        builder = with_panel(with_static(full_history, Section("rules", "x")), Time(clock=clock))
        model = ScriptedModel([say("Hello")])
        Agent(model, context_builder=builder, extensions=[recorder], clock=clock).run("Hi")
        hashes += [event.prefix_hash for event in recorder.events if isinstance(event, ContextBuilt)]
    assert len(hashes) == 2
    assert len(set(hashes)) == 1


def test_a_source_that_fails_fails_the_run(tmp_path: Path) -> None:
    """A missing resource ends the run with an error that names it; the model is not asked."""
    model = ScriptedModel([say("Hello")])
    agent = Agent(model, context_builder=with_panel(full_history, Resource("notes", tmp_path / "gone.md")))
    with pytest.raises(RunFailed, match=r"no file gone\.md"):
        agent.run("Hi")
    assert list(model.requests) == []


def test_a_chain_hands_on_what_each_made() -> None:
    """The next builder sees the system text and the messages of the one before; panels add up."""
    messages = (UserMessage("other"),)
    first, last = (
        Fixed(ModelContext("s1", messages, "p1", {"a": 1})),
        Fixed(ModelContext("s2", messages, "p2", {"b": 2})),
    )
    context = Chain(first, last).build(view(UserMessage("Hi")))
    assert (last.seen[0].system, last.seen[0].messages) == ("s1", messages)
    assert (context.system, context.messages, context.panel) == ("s2", messages, "p1\n\np2")
    assert dict(context.metadata) == {"a": 1, "b": 2}
    assert last.seen[0].transcript is first.seen[0].transcript


def test_an_empty_chain_shows_everything() -> None:
    """As `full_history`, and so does a chain of it: `view.messages` itself, which costs nothing."""
    shown = view(UserMessage("Hi"))
    for chain in (Chain(), Chain(full_history, full_history)):
        context = chain.build(shown)
        assert context.messages is shown.messages
        assert (context.system, context.panel) == ("Be brief.", "")


def test_notes_add_up() -> None:
    """What was placed and what was left out is told by all of the builders."""
    messages = [UserMessage(str(number)) for number in range(6)]
    inner = Chain(Window(4, keep=0.5), with_static(full_history, Section("a", "x")), Window(1))
    context = with_panel(inner, Section("b", "y")).build(view(*messages))
    assert placed_in(context) == (Placed("system", Section("a", "x")), Placed("panel", Section("b", "y")))
    assert [(each.by, each.messages) for each in dropped_from(context)] == [
        ("Window(max_messages=4, keep=0.5)", 3),
        ("Window(max_messages=1, keep=0.5)", 2),
    ]


def test_foreign_notes_are_passed_over() -> None:
    """A builder of somebody else may use the same keys for what it likes."""
    context = ModelContext(metadata={"sections": "none", "dropped": [1, Dropped("me", 1, None, "x")]})
    assert placed_in(context) == ()
    assert dropped_from(context) == (Dropped("me", 1, None, "x"),)


@pytest.mark.parametrize("wrong", [None, Window, "text", 7])
def test_only_builders_are_taken(wrong: object) -> None:
    """What has no method `build`, or a class in place of an instance, is refused at once."""
    for make in (with_static, with_panel):
        with pytest.raises(InvalidArgument, match="builder"):
            make(wrong, Section("a", "x"))  # type: ignore[arg-type]  # on purpose
    with pytest.raises(InvalidArgument, match="builder 1"):
        Chain(full_history, wrong)  # type: ignore[arg-type]  # on purpose


def test_builders_are_readable() -> None:
    """Their reprs say what they are made of."""
    chain = Chain(Window(4), full_history)
    assert repr(chain) == "Chain(Window(max_messages=4, keep=0.5), full_history)"
    assert repr(with_static(chain, ())).startswith("WithSections(builder=Chain(")
