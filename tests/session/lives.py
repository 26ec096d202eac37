"""Sessions in which something of everything has happened, for what writes them out."""

from __future__ import annotations

from gotato_py import (
    AssistantMessage,
    Compaction,
    JSONPart,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolMessage,
    ToolResult,
    TurnStart,
    UserMessage,
    WaitingCall,
)
from gotato_session import Session

from .histories import run_record, user

QUESTION = WaitingCall("a4:0", "c9", "pay", {"sum": 9}, "Pay 9?")


def live(session: Session) -> Session:
    """Fills an empty session: calls and results, a run, a compaction, branches, labels, values, what is pending."""
    session.set("task", {"name": "zoë", "n": [1, None]})
    session.append(UserMessage("Look at Oslo", id="u1", metadata={"from": "web"}))
    calls = [ToolCall("c", "look", '{"city": "Oslo"}'), ToolCall("c", "look", "{")]
    session.append(AssistantMessage([ReasoningPart("Hm.", "sig", "x:y"), TextPart("I look.")], calls, id="a1"))
    session.mark_started("a1:0")
    session.append(ToolMessage(ToolResult("c", "ok", ["sunny", JSONPart({"c": 8})], key="a1:0"), id="t1"))
    session.append(ToolMessage(ToolResult("c", "not_run", error="no JSON", key="a1:1"), id="t2"))
    session.append(AssistantMessage("Sunny.", id="a2"))
    session.end_run(run_record("r-1", 7))
    session.label("sunny")
    session.append(user("u2", "And now?"))
    session.append(AssistantMessage("", [ToolCall("d", "order")], id="a3"))
    session.mark_started("a3:0")
    session.append(ToolMessage(ToolResult("d", "pending", error="on its way", key="a3:0"), id="t3"))
    session.replace(Compaction(UserMessage("They talked of Oslo.", id="s1"), "a2", tokens_before=90, tokens_after=20))
    session.complete_call("a3:0", "arrived")
    session.observe(TurnStart("a", "r", 1, 1, 0.0))
    session.branch("a1")
    session.append(user("u3", "Another way"))
    session.label("start", "")
    session.branch("s1")
    session.append(user("u4", "Pay it"))
    session.append(AssistantMessage("May I?", [ToolCall("c9", "pay", '{"sum": 9}')], id="a4"))
    session.mark_waiting([QUESTION])
    return session
