"""How large a session is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from gotato_py import AssistantMessage, Usage

from ._entries import MessageEntry
from ._state import State


@dataclass(frozen=True, slots=True)
class SessionStats:
    """How many of each a session has, what a fork shares with its parent included.

    `messages` are those of all branches, `in_branch` those of the current one; the model is shown `in_context`. `calls`
    are what answers of all branches asked for, by the name of the tool; `usage` is that of the ended runs.
    """

    entries: int
    messages: int
    in_branch: int
    in_context: int
    branches: int
    compactions: int
    runs: int
    events: int
    calls: Mapping[str, int]
    usage: Usage


def stats_of(state: State) -> SessionStats:
    """Those of the state, at a cost that grows with the session."""
    nodes = list(state.nodes.values())
    messages = [node.message for node in nodes if isinstance(node, MessageEntry)]
    answers = [message for message in messages if isinstance(message, AssistantMessage)]
    parents = {node.parent for node in nodes}
    return SessionStats(
        entries=state.seq,
        messages=len(messages),
        in_branch=len(state.path.history),
        in_context=len(state.path.context),
        branches=sum(id not in parents for id in list(state.nodes)),
        compactions=len(nodes) - len(messages),
        runs=len(state.runs),
        events=len(state.events),
        calls=dict(Counter(call.name for message in answers for call in message.tool_calls)),
        usage=state.usage,
    )
