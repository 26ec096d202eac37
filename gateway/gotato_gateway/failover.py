"""Several models as one: the next is asked when one fails before it has said anything."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence

from gotato_py import (
    ContentFiltered,
    ContextOverflow,
    Done,
    InvalidArgument,
    InvalidRequest,
    Model,
    ModelError,
    ModelEvent,
    ModelProtocolError,
    ModelRequest,
    RateLimits,
    Scope,
    Usage,
    UsageUpdate,
    replace,
)

from ._named import CostOf, capabilities_of, cost_of_model, name_of, provider_of

_THEIR_OWN = {None, 404, 405, 410, 413, 429}
"""What another target may do though this one refuses the request: it was not sent, there is no such model or address,
it is larger than this account may send at once. A redirect as well."""


def another_may_answer(error: ModelError) -> bool:
    """Whether an error says something about the target rather than about the request: `Failover`'s own choice.

    True for everything but `ContextOverflow`, which compaction cures, `ContentFiltered` and `InvalidRequest`, which the
    next target would refuse as well. An `InvalidRequest` counts as the target's own where it was never sent (its
    dialect cannot say it), nothing is there (404), it is a redirect, or larger than this account may send at once.
    """
    if isinstance(error, InvalidRequest):
        return error.status in _THEIR_OWN or (error.status is not None and 300 <= error.status < 400)
    return not isinstance(error, ContextOverflow | ContentFiltered)


class Failover:
    """A model that asks `models` in order, each once a `stream`, until one answers.

    The next is asked when one raises a `ModelError` that `moves_on` accepts before it delivered anything; after that,
    and for any other error, it is raised. If all fail, the error raised is the one that can be retried soonest, else
    the last one; its message tells all of them, and its `cause` is the original. The kernel's retry then begins with
    the first target again. A silent target is given up after its own `idle_timeout`.

    `Done.model`, and so the message's `model`, tells which one answered: the model that it names, behind its service
    ("groq:llama-3.3-70b"). `capabilities` are those that all have. Tokens that a failed target counted are told when
    all fail; when another answers, its usage is its own. Reasoning of one target is dropped by the next one's adapter.

    >>> from gotato_py import Agent, Overloaded
    >>> from gotato_testkit import Raise, ScriptedModel, say
    >>> first = ScriptedModel([Raise(Overloaded("busy"))], name="first")
    >>> second = ScriptedModel([say("Hello.")], name="second")
    >>> result = Agent(Failover([first, second])).run("Hi")
    >>> result.text, result.message.model
    ('Hello.', 'second')
    """

    def __init__(
        self, models: Sequence[Model], *, moves_on: Callable[[ModelError], bool] = another_may_answer, name: str = ""
    ) -> None:
        if isinstance(models, str) or not isinstance(models, Sequence) or not models:
            raise InvalidArgument("Failover: models must be a sequence of at least one Model")
        for index, model in enumerate(models):
            if not callable(getattr(model, "stream", None)):
                raise InvalidArgument(f"Failover: models[{index}] must be a Model, not {type(model).__name__}")
        if not callable(moves_on):
            raise InvalidArgument("Failover: moves_on must be a callable that takes a ModelError")
        if not isinstance(name, str):
            raise InvalidArgument("Failover: name must be a str")
        self._models = tuple(models)
        self._moves_on = moves_on
        self._name = name

    def __repr__(self) -> str:
        return f"Failover([{', '.join(map(repr, self._models))}])"

    @property
    def name(self) -> str:
        """The name that it was given, else its targets' ("failover(groq:llama-3.3-70b, openai:gpt-5)")."""
        return self._name or f"failover({', '.join(map(name_of, self._models))})"

    @property
    def capabilities(self) -> frozenset[str]:
        """What every target can do."""
        first, *others = map(capabilities_of, self._models)
        return first.intersection(*others)

    @property
    def cost_of(self) -> CostOf | None:
        """What prices the runs: that of the targets that have one, if it is the same for them."""
        found = [priced for priced in map(cost_of_model, self._models) if priced is not None]
        return found[0] if found and all(each == found[0] for each in found) else None

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
        """One attempt at an answer, by the first target that gives one."""
        failed: list[tuple[Model, ModelError]] = []
        counted, hopeless = Usage(), False
        for model in self._models:
            scope.check()
            target = _Target(model)
            try:
                yield from target.stream(request, scope)
                return
            except ModelError as error:
                scope.check()
                failed.append((model, error))
                counted += target.usage
                if target.delivered:
                    raise
                hopeless = not self._moves_on(error)
                if hopeless:
                    break
        if counted != Usage():
            yield UsageUpdate(counted)
        raise _outcome(failed, hopeless=hopeless)


class _Target:
    """One target in one attempt. `delivered` says whether it has said anything."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.delivered = False
        self.usage = Usage()

    def stream(self, request: ModelRequest, scope: Scope) -> Iterator[ModelEvent]:
        """Its events. Usage is held back until it has said something, since it may be another that answers."""
        stream = self._model.stream(request, scope)
        try:
            for event in stream:
                if isinstance(event, UsageUpdate) and not self.delivered:
                    self.usage = event.usage
                    continue
                if not isinstance(event, RateLimits) and not self.delivered:
                    self.delivered = True
                    if self.usage != Usage():
                        yield UsageUpdate(self.usage)
                yield replace(event, model=_answering(self._model, event.model)) if type(event) is Done else event
        finally:
            close = getattr(stream, "close", None)
            if close is not None:
                close()
        if not self.delivered:
            raise ModelProtocolError("the model's stream ended without Done: the answer was cut off")


def _answering(model: Model, served: str) -> str:
    """Who answered: `served` is what the answer says. Two services may serve a model of one name, so the service is
    told as well."""
    name, provider = name_of(model), provider_of(model)
    if not served or name.endswith(f":{served}"):
        return name
    return f"{provider}:{served}" if provider else served


def _outcome(failed: list[tuple[Model, ModelError]], *, hopeless: bool) -> ModelError:
    """The error for the attempt; `hopeless` says that the last one is no reason to ask another target."""
    error = failed[-1][1] if hopeless else _soonest([error for _, error in failed])
    if len(failed) == 1:
        return error
    told = "; ".join(f"{name_of(model)}: {type(each).__name__}: {each}" for model, each in failed)
    made = copy.copy(error)  # the same type with all its facts; a model may raise one error object again and again
    made.message = f"no target answered: {told}"
    made.args = (made.message,)
    made.cause = made.__cause__ = error
    return made


def _soonest(errors: list[ModelError]) -> ModelError:
    """The retryable one with the shortest wait, which is when asking again begins to make sense; else the last."""
    retryable = [error for error in reversed(errors) if error.retryable]
    return min(retryable, key=lambda error: error.retry_after or 0.0) if retryable else errors[-1]
