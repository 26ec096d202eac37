"""The request of a turn, built in constant time: messages are shared, checks and hashes go on from the last turn."""

from __future__ import annotations

from collections.abc import Sequence

from ._hooks import REJECTED, transform
from ._run import Run
from ._view import turn_view
from .checks import RequestHistory
from .context import ModelContext, PrefixHasher, TailedMessages, TurnView, full_history, lay_out, with_closing_line
from .errors import Cancelled, DeadlineExceeded, ExtensionFailure, GotatoError, InvalidArgument, InvalidState
from .messages import AssistantMessage, Message, UserMessage
from .model import ModelRequest
from .parts import StopReason
from .tool_spec import ToolSpec

WRAP_UP = (
    "A limit of this run has been reached and no tool can be called any more. "
    "Answer now with what you have, and say what is left undone."
)
"""The instruction of `wrap_up`, never stored."""


class Draft:
    """What a request is made of, before `transform` has seen it; kept for the retries of the same model call.

    `hasher` is that of the request that was laid out: what a transform changed has a prefix of its own.
    """

    __slots__ = ("hasher", "messages", "panel", "system", "tools")

    def __init__(
        self, system: str, messages: Sequence[Message], panel: str, tools: tuple[ToolSpec, ...], hasher: PrefixHasher
    ) -> None:
        self.system = system
        self.messages = messages
        self.panel = panel
        self.tools = tools
        self.hasher = hasher


def draft_request(run: Run, *, wrap_up: bool) -> Draft:
    """The draft for what the transcript holds now."""
    setup = run.setup
    system, panel, shown_whole = setup.instructions, "", True
    tools: tuple[ToolSpec, ...] = () if wrap_up else run.toolset.specs
    messages: Sequence[Message] = run.ledger.view()
    tail = run.ledger.last
    history = run.ledger.history
    if history.problems or not history.settled:
        _refuse(history)
    if setup.builder is not full_history:
        view = turn_view(run)
        messages = view.messages
        context = _build(run, view)
        system, panel = context.system, context.panel
        if run.hasher is not None and run.hasher.system != system:
            run.hasher = None  # it knows another beginning
        if context.messages is not messages:
            shown_whole = False
            checked = _checked(run, context)
            messages = tuple(checked.ordered)
            tail = messages[-1] if messages else None
    if run.hasher is None or wrap_up or setup.sources.changes:
        run.hasher = PrefixHasher(system, tools)  # also where nobody listens yet: somebody may come at any moment
    hasher = run.hasher if shown_whole else PrefixHasher(system, tools)
    if wrap_up:
        messages = TailedMessages(messages, len(messages), (UserMessage(WRAP_UP),))
    elif run.output is not None and run.output.correction is not None:
        messages = TailedMessages(messages, len(messages), (run.output.correction,))
    elif type(tail) is AssistantMessage and tail.stop_reason is not StopReason.PAUSE:
        messages = _closed(messages, tail)
    return Draft(system, messages, panel, tools, hasher)


def lay_out_draft(run: Run, draft: Draft) -> ModelRequest:
    """The request that goes on the wire: the draft as the extensions want it."""
    messages = draft.messages
    if run.setup.points.transform:
        messages = transform(run, messages)
        if messages is not draft.messages:
            draft.hasher = PrefixHasher(draft.system, draft.tools)
            tail = messages[-1]
            if isinstance(tail, AssistantMessage) and tail.stop_reason is not StopReason.PAUSE:
                messages = _closed(messages, tail)
    return lay_out(draft.system, messages, draft.panel, draft.tools, run.options)


def _closed(messages: Sequence[Message], tail: AssistantMessage) -> Sequence[Message]:
    """The messages, closed by a user line that is never stored: no request ends with an answer."""
    reason = tail.metadata.get(REJECTED)
    if reason is None:
        return with_closing_line(messages)
    line = UserMessage(f"Your last answer was rejected: {reason}. Answer again.")
    return TailedMessages(messages, len(messages), (line,))


def _build(run: Run, view: TurnView) -> ModelContext:
    setup = run.setup
    try:
        context = setup.builder.build(view)
    except setup.interrupts:
        raise
    except Exception as error:
        if run.scope.cancelled and isinstance(error, Cancelled | DeadlineExceeded):
            raise
        said = f": {error}" if isinstance(error, GotatoError) else ""
        text = f"{type(setup.builder).__name__}.build raised {type(error).__name__}{said}"
        raise ExtensionFailure(text, operation="Agent.run", cause=error) from error
    if not isinstance(context, ModelContext):
        raise ExtensionFailure(
            f"{type(setup.builder).__name__}.build returned a {type(context).__name__}; it has to return a ModelContext"
        )
    return context


def _checked(run: Run, context: ModelContext) -> RequestHistory:
    """What a builder shows, if it can be sent."""
    builder = f"{type(run.setup.builder).__name__}.build"
    try:
        checked = RequestHistory(context.messages)
    except InvalidArgument as error:
        raise ExtensionFailure(f"{builder}: {error}", operation="Agent.run", cause=error) from error
    if not context.messages:
        raise ExtensionFailure(f"{builder} returned no messages", operation="Agent.run")
    if checked.problems or not checked.settled:
        first = (checked.problems or checked.tail_problems())[0]
        text = f"{builder}: message {first.index} cannot be sent: {first.text}; see check_messages"
        raise ExtensionFailure(text, operation="Agent.run")
    return checked


def _refuse(history: RequestHistory) -> None:
    first = (history.problems or history.tail_problems())[0]
    text = f"the transcript cannot be sent: message {first.index}: {first.text}; see check_messages"
    raise InvalidState(text, operation="Agent.run")
