"""A model that answers from a script, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from threading import Lock
from typing import cast

from gotato_py import InvalidArgument, InvalidState, ModelEvent, ModelRequest, Scope

from .answers import Answer
from .steps import Do, Raise, RaiseOnClose, Return, Stall, Step, Wait, wait_for_end


class ScriptExhausted(InvalidState):
    """The model was asked once more than its script has steps. Fails the run; it is not retried."""


class ScriptedModel:
    """Answers each request with the next step of a script.

    A step is an answer (`say`, `call`, `think`, joined with `+`); a sequence of ModelEvents and `Raise`, `Stall`, `Do`
    and `Wait`; or one of those alone. A sequence is streamed as it is written, however broken: without a `Done`, with
    two, with things that are no events. With `heed_scope`, as an adapter should, it raises as soon as its scope has
    ended, and an ended scope uses up no step; without, only `Stall` and `Wait` look at the scope.

    `steps` may be endless (`itertools.cycle`). Several threads may share the model: each request gets the next step.

    >>> from gotato_py import Agent
    >>> from gotato_testkit import call, say
    >>> model = ScriptedModel([call("weather", city="Oslo"), say("Sunny in Oslo.")])
    >>> def weather(city: str) -> str:
    ...     return f"Sunny in {city}"
    >>> Agent(model, tools=[weather]).run("Is it nice in Oslo?").text
    'Sunny in Oslo.'
    >>> [len(request.messages) for request in model.requests]
    [1, 3]
    """

    def __init__(
        self,
        steps: Iterable[Step],
        *,
        name: str = "scripted",
        capabilities: Iterable[str] = (),
        heed_scope: bool = True,
    ) -> None:
        self.name = name
        self.capabilities: frozenset[str] = frozenset(capabilities)
        self.heed_scope = heed_scope
        if isinstance(steps, Answer | str | Raise | Stall | Do | Wait | Return):
            raise InvalidArgument("ScriptedModel.steps must be a list of steps; put the one step into a list")
        if isinstance(steps, Sequence):
            for index, step in enumerate(steps):
                _check_step(index, step)
        self._steps = iter(tuple(steps) if isinstance(steps, Sequence) else steps)
        self._lock = Lock()
        self._requests: list[ModelRequest] = []
        self._streams: list[_Stream] = []
        self._taken = 0

    def __repr__(self) -> str:
        return f"ScriptedModel({self.name!r}, steps taken={self._taken})"

    @property
    def requests(self) -> list[ModelRequest]:
        """Every request so far, as it was when it came."""
        with self._lock:
            return list(self._requests)

    @property
    def unclosed(self) -> int:
        """How many of the streams that it gave out were not closed; 0 after every run."""
        with self._lock:
            return sum(not stream.closed for stream in self._streams)

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
        """Takes the next step. Raises `ScriptExhausted` if there is none."""
        if self.heed_scope:
            scope.check()
        step = self._next_step(request)
        if isinstance(step, Raise):
            raise step.error
        if isinstance(step, Return):
            return cast("Iterator[ModelEvent]", step.value)  # the test wants to see what a caller does with it
        stream = _Stream(step if isinstance(step, Sequence) else (step,), scope, heed_scope=self.heed_scope)
        with self._lock:
            self._streams.append(stream)
        return cast("Iterator[ModelEvent]", stream)  # it may hold things that are no events, on purpose

    def _next_step(self, request: ModelRequest) -> Step:
        with self._lock:
            self._requests.append(_snapshot(request))
            for step in self._steps:
                _check_step(self._taken, step)
                self._taken += 1
                return step
            raise ScriptExhausted(_exhausted(self._taken, request), operation="ScriptedModel.stream")


def _snapshot(request: ModelRequest) -> ModelRequest:
    """The request with a tuple of its own for messages, which may be a view of something that grows."""
    return ModelRequest(
        request.system, tuple(request.messages), request.tools, request.options, request.cache_breakpoints
    )


def _exhausted(steps: int, request: ModelRequest) -> str:
    last = request.messages[-1].role if len(request.messages) else "nobody"
    names = ", ".join(spec.name for spec in request.tools) or "none"
    return (
        f"the script has {steps} step{'s' * (steps != 1)}, and the model was asked once more: {len(request.messages)} "
        f"messages, the last one from {last}, tools: {names}. Add a step, or find out why it is asked again."
    )


def _check_step(index: int, step: object) -> None:
    """Refuses what is surely a slip of the pen; a sequence may hold anything but answers and other steps."""
    where = f"ScriptedModel.steps[{index}]"
    if isinstance(step, Raise | Stall | Do | Wait | Return | Answer):
        return
    if isinstance(step, str | bytes) or not isinstance(step, Sequence):
        said = f"a {type(step).__name__}"
        raise InvalidArgument(
            f"{where} is {said}; a step is an answer such as say('…'), a list of ModelEvents, or a Raise"
        )
    for place, item in enumerate(cast("Sequence[object]", step)):
        if isinstance(item, Answer | Return):
            kind = type(item).__name__
            raise InvalidArgument(f"{where}[{place}] is a whole {kind}; unpack it ([*say('…')[:-1], …]) or join with +")


class _Stream:
    """One answer on its way. `closed` says whether its reader has closed it."""

    def __init__(self, items: Sequence[object], scope: Scope, *, heed_scope: bool) -> None:
        on_close = [item.error for item in items if isinstance(item, RaiseOnClose)]
        self.closed = False
        self._close_error = on_close[-1] if on_close else None
        self._items = iter([item for item in items if not isinstance(item, RaiseOnClose)])
        self._scope = scope
        self._heed_scope = heed_scope

    def __iter__(self) -> _Stream:
        return self

    def __next__(self) -> object:
        for item in self._items:
            if self._heed_scope:
                self._scope.check()
            match item:
                case Raise():
                    raise item.error
                case Stall():
                    wait_for_end(self._scope)
                case Do():
                    item.fn()
                case Wait():
                    self._scope.wait(item.seconds)
                case _:
                    return item
        raise StopIteration

    def close(self) -> None:
        self.closed = True
        self._items = iter(())
        if self._close_error is not None:
            raise self._close_error
