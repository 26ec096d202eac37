"""What every ContextBuilder promises (`gotato_py.ContextBuilder`)."""

from __future__ import annotations

from collections.abc import Callable

from gotato_py import (
    ContextBuilder,
    GotatoError,
    MemoryTranscript,
    Message,
    ModelContext,
    TurnView,
    UserMessage,
    assemble_request,
    check_messages,
)
from gotato_testkit import strategies as gst

from ._histories import exact, in_request_order
from ._suite import BrokenPromise, Suite, after, require, shaped

_BUILDS = "test_it_builds_a_model_context"


class ContextBuilderContract(Suite):
    """The promises of a context builder: `class TestMine(ContextBuilderContract)` with a `make()` that returns one.

    It is asked to build contexts of drawn histories. Returning `view.messages` as they are is fine.
    """

    def make(self) -> ContextBuilder:
        """The builder."""
        raise NotImplementedError("a ContextBuilderContract needs make(), which returns the builder to test")

    def view(self, messages: list[Message]) -> TurnView:
        """What the builder is shown: a turn in a transcript that holds these messages."""
        return TurnView("Be brief.", in_request_order(messages), MemoryTranscript(messages), run_id="r-1", turn=1)

    def test_it_builds_a_model_context(self) -> None:
        """Whatever the history, an empty one too."""

        self._for_histories(lambda view, context: None, min_turns=0)

    @after(_BUILDS)
    def test_what_it_builds_can_be_sent(self) -> None:
        """Every call has its result directly behind its message, and no answer is empty."""

        def check(view: TurnView, context: ModelContext) -> None:
            problems = check_messages(context.messages)
            require(
                not problems,
                "the messages of a context keep the rules of a history (ContextBuilder.build)",
                found=f"of {len(view.messages)} messages {len(context.messages)} are shown; "
                f"message {problems[0].index if problems else 0}: {problems[0].text if problems else ''}",
                remedy="leave out or keep a call and its results together; check_messages says what is wrong",
            )

        self._for_histories(check)

    @after(_BUILDS)
    def test_a_user_message_comes_first(self) -> None:
        """Some providers refuse a request that begins otherwise."""

        def check(view: TurnView, context: ModelContext) -> None:
            first = context.messages[0] if len(context.messages) else None
            require(
                isinstance(first, UserMessage),
                "the first message of a context is a user message (ContextBuilder.build)",
                found="no message at all" if first is None else f"one from {first.role}",
                remedy="cut in front of a user message, or put a summary of what was left out there",
            )

        self._for_histories(check)

    @after(_BUILDS)
    def test_the_same_view_gives_the_same_context(self) -> None:
        """A request that is built again, for a retry, is the same; only the panel may tell another time."""
        builders: list[ContextBuilder] = []

        def check(view: TurnView, context: ModelContext) -> None:
            again = _built(builders[-1], view)
            differing = exact(list(again.messages), list(context.messages))
            require(
                not differing and again.system == context.system,
                "the same view gives the same context, or no prompt cache can help (ContextBuilder.build)",
                found=differing or "another system text",
                remedy="keep time, random ids and sets out of it; what changes each turn belongs into the panel",
            )

        self._for_histories(check, builders=builders)

    @after(_BUILDS)
    def test_what_it_is_shown_stays_as_it_was(self) -> None:
        """Neither the view nor the transcript changes."""

        def check(view: TurnView, context: ModelContext) -> None:
            differing = exact(view.messages, self._shown[0]) or exact(view.transcript.messages, self._shown[1])
            require(
                not differing,
                "a builder reads; only before_run and before_turn may compact (ContextBuilder.build)",
                found=f"in the transcript, {differing}",
                remedy="build from copies, and leave compacting to an extension",
            )

        self._for_histories(check)

    @after(_BUILDS)
    def test_a_request_can_be_made_of_it(self) -> None:
        """`assemble_request` takes the context as it is."""

        def check(view: TurnView, context: ModelContext) -> None:
            try:
                assemble_request(context)
            except GotatoError as error:
                raise BrokenPromise(
                    "a context becomes a request (assemble_request)",
                    str(error),
                    "put only messages into `messages`, and only text into `system` and `panel`",
                ) from error

        self._for_histories(check)

    _shown: tuple[list[Message], list[Message]]

    def _for_histories(
        self,
        check: Callable[[TurnView, ModelContext], None],
        *,
        min_turns: int = 1,
        builders: list[ContextBuilder] | None = None,
    ) -> None:
        def build(messages: list[Message]) -> None:
            builder, view = shaped(self.make(), "build"), self.view(messages)
            if builders is not None:
                builders.append(builder)
            self._shown = (list(view.messages), list(view.transcript.messages))
            check(view, _built(builder, view))

        self.for_all(gst.histories(min_turns=min_turns), build)


def _built(builder: ContextBuilder, view: TurnView) -> ModelContext:
    try:
        context: object = builder.build(view)
        found = "" if isinstance(context, ModelContext) else f"a {type(context).__name__}"
    except Exception as error:
        context, found = None, f"it raised {type(error).__name__}"
    if not isinstance(context, ModelContext):
        raise BrokenPromise(
            "build returns a ModelContext (ContextBuilder.build)",
            found,
            "take (view), and return ModelContext(view.system, messages)",
        )
    return context
