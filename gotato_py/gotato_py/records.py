"""What a transcript keeps beside its messages: calls that wait, compactions, finished runs."""

from __future__ import annotations

from collections.abc import Mapping

from ._fields import Text, field, instance_of, mapping
from ._mapping import EMPTY
from ._value import value
from .decisions import Approve, Deny
from .messages import UserMessage
from .parts import NO_USAGE, Usage


@value
class WaitingCall:
    """A call that waits for a person. `decision` is None until it is answered; `expires_at` is in Unix seconds, or None
    where the question never expires."""

    key: Text
    call_id: Text = ""
    name: Text = ""
    arguments: Mapping[str, object] = field(default=EMPTY, check=mapping)
    question: Text = ""
    expires_at: float | None = None
    decision: Approve | Deny | None = field(default=None, check=instance_of(Approve, Deny, optional=True))


@value
class Compaction:
    """A summary that stands for every message up to and including the one whose id is `through`."""

    summary: UserMessage = field(check=instance_of(UserMessage))
    through: Text
    reason: Text = field(default="", kw_only=True)
    tokens_before: int = field(default=0, kw_only=True)
    tokens_after: int = field(default=0, kw_only=True)
    usage: Usage = field(default=NO_USAGE, check=instance_of(Usage), kw_only=True)
    metadata: Mapping[str, object] = field(default=EMPTY, check=mapping, compare=False, kw_only=True)


@value
class RunRecord:
    """One finished run: `started_at` in Unix seconds, `elapsed_s` in seconds, `error` a code or ""."""

    run_id: Text
    agent: Text
    status: Text
    error: Text
    started_at: float
    elapsed_s: float
    turns: int
    tool_calls: int
    usage: Usage = field(check=instance_of(Usage))
