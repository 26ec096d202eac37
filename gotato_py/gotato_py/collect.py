"""A model call outside of any agent, for summarisers and tests."""

from __future__ import annotations

from ._answer import Answer
from ._attempt import attempt, check_silence, delay_before_next, silence_is_answer
from ._fields import wrong
from .ids import random_ids
from .messages import AssistantMessage
from .model import Model, ModelRequest
from .model_errors import ModelError
from .retry import DEFAULT_RETRY, RetryPolicy
from .scope import Scope


def collect(
    model: Model, request: ModelRequest, scope: Scope | None = None, *, retry: RetryPolicy = DEFAULT_RETRY
) -> AssistantMessage:
    """The model's whole answer to a request, retried like an agent's.

    Raises the `ModelError` of the last attempt, `EmptyResponse` for two empty answers in a row (after a tool result an
    empty answer is returned), `Cancelled` or `DeadlineExceeded` when the scope ends.
    """
    if not callable(getattr(model, "stream", None)):
        raise wrong("collect: model", "an object that has a method stream(request, scope)", model)
    for where, given, kind in (("request", request, ModelRequest), ("retry", retry, RetryPolicy)):
        if not isinstance(given, kind):
            raise wrong(f"collect: {where}", f"a {kind.__name__}", given)
    if scope is not None and not isinstance(scope, Scope):
        raise wrong("collect: scope", "a Scope or None", scope)
    own = Scope() if scope is None else scope
    number, silences = 1, 0
    while True:
        answer = Answer(random_ids("message"))
        try:
            for _ in attempt(model, request, own, None, answer):
                pass
        except ModelError as error:
            own.wait(delay_before_next(retry, number, error, own))
            number += 1
            continue
        if not answer.is_empty() or silence_is_answer(request):
            name = getattr(model, "name", "")
            return answer.message(name if isinstance(name, str) else "")
        silences += 1
        check_silence(answer, silences)
