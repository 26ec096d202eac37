"""Structured output in a run: how the model is asked for it, and what it is told when its answer does not fit."""

from __future__ import annotations

from ._output import OutputPlan, Read
from ._toolset import Toolset
from .errors import InvalidArgument, OutputInvalid
from .messages import UserMessage
from .violations import SchemaViolation

MOST_CORRECTIONS = 3


class Output:
    """What a run was asked for, and what came of it so far.

    `native`: the model keeps to a schema by itself, and its text is the output. Otherwise it calls `final_answer`.
    `correction` is told in the next request and never stored.
    """

    __slots__ = ("correction", "corrections", "native", "plan", "read")

    def __init__(self, plan: OutputPlan, *, native: bool) -> None:
        self.plan: OutputPlan = plan
        self.native: bool = native
        self.read: Read | None = None
        self.corrections: int = 0
        self.correction: UserMessage | None = None

    def offer(self, toolset: Toolset) -> Toolset:
        """The tools, and beside them the one that gives the output. Raises `InvalidArgument` if its name is taken."""
        if self.native:
            return toolset
        spec = self.plan.spec()
        if spec.name in toolset:
            text = (
                f"output=: a tool is named {spec.name!r}, which this model needs for the output; name yours otherwise"
            )
            raise InvalidArgument(text, operation="Agent.run")
        return toolset.offering(spec)

    def forget(self) -> None:
        """Takes back what came of it so far."""
        self.read, self.corrections, self.correction = None, 0, None

    def count(self) -> None:
        """Counts an answer that does not fit. Raises `OutputInvalid` after three corrections.

        The model is told what is wrong; an error does not repeat it: a constructor may quote the answer in it.
        """
        if self.corrections >= MOST_CORRECTIONS:
            text = f"the model's answer did not fit the output after {MOST_CORRECTIONS} corrections"
            raise OutputInvalid(text, operation="Agent.run")
        self.corrections += 1

    def correct(self, violation: SchemaViolation) -> None:
        """Has the model told, with the next request, what is wrong with its text."""
        self.count()
        self.correction = UserMessage(
            f"Your answer does not fit what was asked for: {violation}. Answer again, with nothing but the JSON."
        )

    def ask_for_call(self) -> None:
        """Has the model told, with the next request, that it has to call the tool."""
        name = self.plan.spec().name
        self.count()
        self.correction = UserMessage(f"Give your final answer by calling the tool {name}.")
