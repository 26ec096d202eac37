"""The seam to tools that come and go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .context import TurnView
from .tools import Tool


class ToolSource(Protocol):
    """Tools that may change from turn to turn."""

    def tools(self, view: TurnView) -> Sequence[Tool]:
        """The tools of this turn, asked at its start; that set holds for the whole turn.

        What it raises, two tools of one name and what is no tool fail the run. Returning the same sequence again costs
        nothing; a tool seen before is not compiled again.
        """
        ...
