"""The request of a turn, built in constant time: messages are shared, checks and hashes go on from the last turn."""

from __future__ import annotations

from collections.abc import Sequence

from ._run import Run
from .checks import RequestHistory
from .context import ModelContext, PrefixHasher, TurnView, full_history, lay_out, with_closing_line
from .errors import Cancelled, DeadlineExceeded, ExtensionFailure, GotatoError, InvalidArgument, InvalidState
from .messages import AssistantMessage, Message, UserMessage
from .model import ModelRequest
from .parts import StopReason
from .tool_spec import ToolSpec

WRAP_UP = UserMessage(
    "A limit of this run has been reached and no tool can be called any more. "
    "Answer now with what you have, and say what is left undone."
)
"""The instruction of `wrap_up`, never stored."""


def next_request(run: Run, *, wrap_up: bool = False) -> ModelRequest:
    """The request for what the transcript holds now."""
    setup = run.setup
    system, panel = setup.instructions, ""
    tools: tuple[ToolSpec, ...] = () if wrap_up else setup.toolset.specs
    messages: Sequence[Message] = run.ledger.view()
    tail = run.ledger.last
    history = run.ledger.history
    if history.problems or not history.settled:
        _refuse(history, "the transcript")
    if setup.builder is not full_history:
        context = _build(run, messages)
        system, panel, run.hasher = context.system, context.panel, None
        if context.messages is not messages:
            checked = _checked(run, context)
            messages = tuple(checked.ordered)
            tail = messages[-1] if messages else None
    if run.listening and (run.hasher is None or wrap_up):
        run.hasher = PrefixHasher(system, tools)
    if wrap_up:
        messages = (*messages, WRAP_UP)
    elif type(tail) is AssistantMessage and tail.stop_reason is not StopReason.PAUSE:
        messages = with_closing_line(messages)
    return lay_out(system, messages, panel, tools, setup.options)


def _build(run: Run, messages: Sequence[Message]) -> ModelContext:
    setup = run.setup
    view = TurnView(
        setup.instructions, messages, setup.transcript, run.id, run.turn, run.usage, run.deps, run.scope,
    )  # fmt: skip
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


def _refuse(history: RequestHistory, what: str) -> None:
    first = (history.problems or history.tail_problems())[0]
    raise InvalidState(
        f"{what} cannot be sent: message {first.index}: {first.text}; see check_messages", operation="Agent.run"
    )
