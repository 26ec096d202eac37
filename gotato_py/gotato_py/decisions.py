"""What gates, guardrails and people decide: small frozen values, so that nothing is decided by a bool or a string."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._fields import Text, field, wrong
from ._text import well_formed
from ._value import value
from .errors import InvalidArgument
from .messages import PartsLike, ToolResult
from .parts import Part, as_parts
from .scope import checked_timeout


def _reason(where: str, given: Any) -> str:
    if not isinstance(given, str):
        raise wrong(where, "a str", given)
    if not given.strip():
        raise InvalidArgument(f"{where} is empty: say why, the model or the person in charge reads it")
    return well_formed(given)


def _shown_instead(where: str, given: Any) -> ToolResult | tuple[Part, ...] | None:
    return given if given is None or isinstance(given, ToolResult) else as_parts(where, given)


@value
class Allow:
    """A gate lets the call run."""


@value
class Block:
    """A gate refuses the call: its result is `blocked`, and the run goes on.

    The model is told `reason`, or the content of `result` (text, parts, or a `ToolResult` of which the parts count).
    """

    reason: str = field(check=_reason)
    result: ToolResult | tuple[Part, ...] | None = field(default=None, check=_shown_instead)

    if TYPE_CHECKING:  # result takes more than the attribute holds

        def __init__(self, reason: str, result: ToolResult | PartsLike | None = None) -> None: ...


@value
class Ask:
    """A gate wants a person to decide: the run settles as waiting until `answers` come.

    `expires_in` is in seconds from now; an answer after that blocks the call. None waits for ever.
    """

    question: str = field(check=_reason)
    expires_in: float | None = field(default=None, check=checked_timeout)


@value
class Accept:
    """A guardrail lets the answer pass."""


@value
class Reject:
    """A guardrail refuses the answer: the run fails before any of its tools starts.

    The answer stays in the transcript, its calls not run; with `redact` it is withheld and nothing of it is kept.
    """

    reason: str = field(check=_reason)
    redact: bool = False


@value
class Approve:
    """A person lets the call run, with exactly the arguments that were shown."""


@value
class Deny:
    """A person refuses the call; the model is told `reason`."""

    reason: Text = ""


Decision = Approve | Deny
"""A person's answer to a call that waits."""

DECISIONS = (Allow, Block, Ask, Accept, Reject, Approve, Deny)
"""Every kind of decision: none of them is data."""
