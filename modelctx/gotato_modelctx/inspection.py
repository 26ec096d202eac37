"""What the model would see now: how large each part is, what a cache could keep, what is left out and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gotato_py import (
    Agent,
    Compaction,
    ContextBuilder,
    InvalidArgument,
    ModelContext,
    ModelOptions,
    ModelRequest,
    Problem,
    Scope,
    Tool,
    ToolSpec,
    Transcript,
    TurnView,
    as_tool,
    assemble_request,
    check_messages,
    full_history,
)

from ._arguments import check_counter, is_sequence, wrong
from ._context_notes import Dropped, dropped_from
from ._inspected_parts import InspectedPart, parts_of
from ._inspection_text import written
from ._request_order import in_request_order
from .builders import checked_builder
from .compacting import COVERED
from .tokens import TokenCounter

ToolLike = Tool | ToolSpec | Callable[..., object]


@dataclass(frozen=True, slots=True)
class Inspection:
    """The next request, measured. `str()` of it is a table, `to_dict()` plain JSON data; neither holds any content.

    `parts` are in the order of the request. `cached` ones are before the last message: what a provider's cache can keep
    from one turn to the next, as long as `prefix_hash` of it stays what it was. `dropped` is what is not shown, by whom
    and why. `problems` is what would keep this from being sent, such as calls that still wait for an answer. `request`
    is the request itself, with its content.
    """

    parts: tuple[InspectedPart, ...]
    dropped: tuple[Dropped, ...]
    problems: tuple[Problem, ...]
    prefix_hash: str
    breakpoints: tuple[str | int, ...]
    request: ModelRequest

    @property
    def tokens(self) -> int:
        """The estimate for the whole request."""
        return sum(part.tokens for part in self.parts if not part.within)

    @property
    def bytes(self) -> int:
        """The bytes of its content."""
        return sum(part.bytes for part in self.parts if not part.within)

    @property
    def cached_tokens(self) -> int:
        """The estimate for the cacheable prefix."""
        return sum(part.tokens for part in self.parts if part.cached and not part.within)

    def __str__(self) -> str:
        return written(self.to_dict())

    def to_dict(self) -> dict[str, Any]:  # Any: JSON data
        """Plain JSON data: sizes, names and ids, no content."""
        return {
            "tokens": self.tokens,
            "bytes": self.bytes,
            "cached_tokens": self.cached_tokens,
            "prefix_hash": self.prefix_hash,
            "breakpoints": list(self.breakpoints),
            "parts": [part.to_dict() for part in self.parts],
            "dropped": [
                {"by": each.by, "messages": each.messages, "tokens": each.tokens, "reason": each.reason}
                for each in self.dropped
            ],
            "problems": [{"index": each.index, "rule": each.rule, "text": each.text} for each in self.problems],
        }


def inspect(
    what: Agent | Transcript | TurnView,
    *,
    instructions: str | None = None,
    tools: Iterable[ToolLike] | None = None,
    builder: ContextBuilder | None = None,
    options: ModelOptions | None = None,
    counter: TokenCounter | None = None,
) -> Inspection:
    """What the model would see if it were asked now. Changes nothing, and asks no model.

    Of an agent, its transcript, its instructions, the tools that it has now and its builder are taken, unless others
    are given. For a transcript, what is not given here is not there: no instructions, no tools, `full_history`. A view
    has its own system text. What extensions change in `transform` is not seen, nor a closing line that the kernel adds.

    Raises `InvalidArgument` for anything else, and what the builder raises.
    """
    check_counter("inspect: counter", counter)
    if builder is not None:
        checked_builder("inspect", builder)
    if tools is not None and (not isinstance(tools, Iterable) or isinstance(tools, str | bytes)):
        raise wrong("inspect: tools", "tools, their specs or functions", tools)
    view, given_tools, given_builder = _view_of(what, instructions, tools, builder)
    context = given_builder.build(view)
    if not isinstance(context, ModelContext):
        raise InvalidArgument(f"inspect: the builder returned a {type(context).__name__}, not a ModelContext")
    specs = [_spec(index, each) for index, each in enumerate(given_tools)]
    request, prefix_hash = assemble_request(context, specs, ModelOptions() if options is None else options)
    return Inspection(
        parts_of(context, request.tools, counter),
        (*_compacted(view.transcript), *dropped_from(context)),
        tuple(check_messages(context.messages)),
        prefix_hash,
        request.cache_breakpoints,
        request,
    )


def _view_of(
    what: Agent | Transcript | TurnView,
    instructions: str | None,
    tools: Iterable[ToolLike] | None,
    builder: ContextBuilder | None,
) -> tuple[TurnView, Iterable[ToolLike], ContextBuilder]:
    if isinstance(what, TurnView):
        if instructions is not None:
            raise InvalidArgument("inspect: a view has its own system text; leave instructions out")
        return what, tools or (), builder or full_history
    if isinstance(what, Agent):
        instructions = what.instructions if instructions is None else instructions
        builder = what.context_builder if builder is None else builder
        tools = what.tools() if tools is None else tools
        what = what.transcript
    if not is_sequence(getattr(what, "messages", None)) or not callable(getattr(what, "append", None)):
        raise InvalidArgument(f"inspect: takes an Agent, a Transcript or a TurnView, not {type(what).__name__}")
    view = TurnView(instructions or "", in_request_order(what.messages), what, scope=Scope())
    return view, tools or (), builder or full_history


def _spec(index: int, given: ToolLike) -> ToolSpec:
    if isinstance(given, ToolSpec):
        return given
    spec = getattr(given, "spec", None)
    if isinstance(spec, ToolSpec):
        return spec
    if callable(given):
        return as_tool(given).spec
    raise InvalidArgument(f"inspect: tools[{index}] must be a tool, its spec or a function, not {type(given).__name__}")


def _compacted(transcript: Transcript) -> tuple[Dropped, ...]:
    """What compactions have put a summary in the place of."""
    compactions: Sequence[Compaction] = getattr(transcript, "compactions", ())
    if not compactions:
        return ()
    tokens = sum(max(0, each.tokens_before - each.tokens_after) for each in compactions) or None
    said = f"summarised: {len(compactions)} compaction{'s' * (len(compactions) > 1)}, the summary is shown"
    return (Dropped("compaction", _covered(transcript, compactions), tokens, said),)


def _covered(transcript: Transcript, compactions: Sequence[Compaction]) -> int | None:
    """How many messages the summary stands for; None where neither the transcript nor the compactions tell."""
    history: Sequence[object] | None = getattr(transcript, "history", None)
    if history is not None:
        return max(0, len(history) - len(transcript.messages) + 1)
    counts = [count for each in compactions if isinstance(count := each.metadata.get(COVERED), int)]
    earlier_summaries = len(compactions) - 1  # each but the last is covered by the one behind it
    return sum(counts) - earlier_summaries if len(counts) == len(compactions) else None
