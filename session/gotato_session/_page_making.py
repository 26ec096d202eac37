"""A session as a page: its current branch from the first message to the newest, and what there is to say beside it."""

# The log of a session is the package's own:
# pyright: reportPrivateUsage=false

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from gotato_py import (
    AssistantMessage,
    Compaction,
    Message,
    RunRecord,
    StopReason,
    ToolMessage,
    ToolResultStatus,
    Usage,
    UserMessage,
    WaitingCall,
    record_to_dict,
)

from ._page import Block, Code, Line, Name, Note, Page, Piece, Said
from ._page_pieces import arguments, pieces_of, results_of
from ._salvaging import GAP
from ._settlements import TOOL_UPDATE
from ._state import State
from .session import Session

_LOOKS = 5
"""At a session to which others write, before it is shown as it comes."""

OUTCOMES: Mapping[ToolResultStatus, str] = {
    ToolResultStatus.OK: "done",
    ToolResultStatus.FAILED: "failed, the tool ran",
    ToolResultStatus.NOT_RUN: "not run, it never started",
    ToolResultStatus.BLOCKED: "blocked, it never started",
    ToolResultStatus.CANCELLED: "cancelled after it was started, its effect is unknown",
    ToolResultStatus.TIMED_OUT: "given up after its time, its effect is unknown",
    ToolResultStatus.PENDING: "pending, the work goes on elsewhere",
}
"""What became of a call, in words."""

_ENDS: Mapping[StopReason, str] = {
    StopReason.MAX_TOKENS: "cut off: the model had reached its limit of tokens",
    StopReason.CONTENT_FILTER: "the provider's filter ended it",
    StopReason.PAUSE: "the model paused here",
    StopReason.CANCELLED: "cut off: the run was cancelled",
    StopReason.ERROR: "cut off by an error",
}
_COLUMNS = ("run", "started", "status", "turns", "calls", "input", "output", "seconds")


def page_of(session: Session, *, full: bool) -> Page:
    """The page; `full` shows long results whole. The branch is that of one moment, and so is all the rest unless others
    write without a rest."""
    looks = 0
    while True:  # until nothing was committed meanwhile
        looks += 1
        path, history, compactions = session._log.read(_branch)
        facts, labels, runs = tuple(_facts(session)), session.labels, session.runs
        ends = (*_waiting(session.waiting, full=full), *_problems(session))
        if session.path == path or looks == _LOOKS:
            break
    made = _Blocks(labels, full)
    blocks = [*made.all(path, history, compactions), *ends]
    return Page(("Session ", Name(session.id)), facts, tuple(blocks), _COLUMNS, tuple(map(_run, runs)))


def _branch(state: State) -> tuple[tuple[str, ...], list[Message], tuple[Compaction, ...]]:
    return tuple(state.ids_to(state.leaf)), list(state.path.history), state.path.compactions


def _facts(session: Session) -> Iterator[tuple[str, Line]]:
    if session.parent_id:
        yield "forked from", (Name(session.parent_id),)
    path, leaves = session.path, session.leaves
    shown = f"{len(session.history):,} in this branch, of which the model is shown {len(session.messages):,}"
    yield "messages", (shown,)
    if path:
        yield "this branch ends at", (Name(path[-1]),)
    others = [id for id in leaves if id not in path[-1:]]
    if others:
        yield "other branches end at", _listed([(Name(id),) for id in others])
    if session.labels:
        named = [(Name(name), " at ", Name(id) if id else "the beginning") for name, id in session.labels.items()]
        yield "labels", _listed(named)
    if session.metadata:
        pairs = [(Name(f"{key} = {json.dumps(each, ensure_ascii=False)}"),) for key, each in session.metadata.items()]
        yield "metadata", _listed(pairs)
    if session.runs:
        yield "tokens of all runs", (tokens(session.usage),)
    for text in session.recovered:
        yield "mended", (Name(text),)


def _listed(lines: Sequence[Line]) -> Line:
    """The lines, with commas between them."""
    return tuple([word for line in lines for word in (", ", *line)])[1:]


def tokens(usage: Usage) -> str:
    """Usage in words."""
    cached = f" ({usage.cache_read_tokens:,} from the cache)" if usage.cache_read_tokens else ""
    return f"{usage.input_tokens:,} in{cached}, {usage.output_tokens:,} out"


class _Blocks:
    """Makes the blocks of a branch, one after another: a result is told with the name of its call."""

    def __init__(self, labels: Mapping[str, str], full: bool) -> None:
        self._full = full
        self._called: dict[str, str] = {}
        self._labels: dict[str, list[str]] = {}
        for name, id in labels.items():
            self._labels.setdefault(id, []).append(name)

    def all(
        self, path: tuple[str, ...], history: list[Message], compactions: tuple[Compaction, ...]
    ) -> Iterator[Block]:
        messages = {message.id: message for message in history}
        summaries = {each.summary.id: each for each in compactions}
        for id in path:
            if id in summaries:
                yield self._summary(summaries[id])
            elif id in messages:
                yield self._message(messages[id])

    def _message(self, message: Message) -> Block:
        match message:
            case UserMessage():
                return self._user(message)
            case AssistantMessage():
                return self._assistant(message)
            case ToolMessage():
                return self._tool(message)

    def _user(self, message: UserMessage) -> Block:
        if GAP in message.metadata:
            return self._block("gap", ("Gap",), message.id, pieces_of(message.parts))
        words = ("User, what came of a pending call",) if TOOL_UPDATE in message.metadata else ("User",)
        return self._block("user", words, message.id, pieces_of(message.parts))

    def _assistant(self, message: AssistantMessage) -> Block:
        self._called |= {f"{message.id}:{index}": call.name for index, call in enumerate(message.tool_calls)}
        heading: Line = ("Assistant, ", Name(message.model)) if message.model else ("Assistant",)
        return self._block("assistant", heading, message.id, self._answer(message))

    def _answer(self, message: AssistantMessage) -> Iterator[Piece]:
        yield from pieces_of(message.parts)
        for index, call in enumerate(message.tool_calls):
            yield Note(("calls ", Name(call.name), " (", Name(f"{message.id}:{index}"), ")"))
            yield from arguments(call.arguments, full=self._full)
        if message.stop_reason in _ENDS:
            yield Note((_ENDS[message.stop_reason],))

    def _tool(self, message: ToolMessage) -> Block:
        result = message.result
        name = self._called.get(result.key, "")
        heading: Line = ("Result of ", Name(name) if name else "a call", f": {OUTCOMES[result.status]}")
        return self._block("tool", heading, message.id, self._result(message))

    def _result(self, message: ToolMessage) -> Iterator[Piece]:
        result = message.result
        if result.key:
            yield Note(("answers ", Name(result.key)))
        if result.error:
            yield Note((Name(result.error),))
        yield from results_of(result.parts, full=self._full)

    def _summary(self, compaction: Compaction) -> Block:
        summary = compaction.summary
        before, after = compaction.tokens_before, compaction.tokens_after
        size = f"; about {before:,} tokens became {after:,}" if before else ""
        told = Note(("in the place of everything up to ", Name(compaction.through), f" for the model{size}"))
        return self._block("summary", ("Summary",), summary.id, iter((told, *pieces_of(summary.parts))))

    def _block(self, kind: str, heading: Line, id: str, pieces: Iterator[Piece]) -> Block:
        return Block(kind, heading, id, tuple(self._labels.get(id, ())), tuple(pieces))


def _waiting(calls: tuple[WaitingCall, ...], *, full: bool) -> Iterator[Block]:
    for call in calls:
        pieces: list[Piece] = [Said(call.question)] if call.question else []
        pieces += arguments(json.dumps(record_to_dict(call).get("arguments", {})), full=full)
        if call.expires_at is not None:
            pieces.append(Note((f"the question expires at {utc(call.expires_at)}",)))
        if call.decision is not None:
            pieces.append(Note((f"answered: {type(call.decision).__name__.lower()}",)))
        heading = ("Answered, not carried out yet: ", "Waiting for an answer: ")[call.decision is None]
        yield Block("waiting", (heading, Name(call.name or "a call"), " (", Name(call.key), ")"), pieces=tuple(pieces))


def _problems(session: Session) -> Iterator[Block]:
    found = session.check()
    if found:
        text = "\n".join([f"message {each.index}: {each.text}" for each in found])
        yield Block("problem", ("To be mended when it is opened for writing",), pieces=(Code(text),))


def _run(record: RunRecord) -> tuple[str, ...]:
    status = f"{record.status}: {record.error}" if record.error else record.status
    usage = record.usage
    return (
        record.run_id, utc(record.started_at), status, f"{record.turns:,}", f"{record.tool_calls:,}",
        f"{usage.input_tokens:,}", f"{usage.output_tokens:,}", f"{record.elapsed_s:.1f}",
    )  # fmt: skip


def utc(seconds: float) -> str:
    """A time in Unix seconds, in words."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{seconds} (Unix seconds)"
