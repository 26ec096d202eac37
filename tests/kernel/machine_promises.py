"""What gates, people, guardrails, hosts and subscribers were promised, read from the log of a `World`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gotato_py import Approve, RunResult, UserMessage, WaitingCall

from .machine_extensions import ADVISORY, Asked
from .machine_words import Entry
from .machine_world import World

GOING_IN = ("before_run", "before_turn", "before_tool")
COMING_OUT = ("check_answer", "after_tool", "should_stop")


def _asked(log: Sequence[Entry]) -> list[list[Asked]]:
    """Who was asked what, run by run."""
    runs: list[list[Asked]] = [[]]
    for kind, value, _ in log:
        if kind == "begin_run":
            runs.append([])
        elif kind == "asked":
            runs[-1].append(value)
    return runs


def _blocks(asked: Asked) -> bool:
    fails = asked.fails and asked.who != ADVISORY
    return asked.point == "before_tool" and (fails or asked.does.startswith("block"))


def gates(log: Sequence[Entry]) -> list[str]:
    """No call runs that a gate blocked, or asked a person about who has not approved of just these arguments."""
    problems: list[str] = []
    blocked: set[object] = set()
    unanswered: set[object] = set()
    for kind, value, _ in log:
        if kind == "begin_run":
            blocked, unanswered = set(), set()
        elif kind == "asked" and value.point == "before_tool":
            if value.subject in blocked:
                problems.append(f"{value} was asked about a call that is blocked")
            if _blocks(value):
                blocked.add(value.subject)
            if value.does.startswith("ask"):
                unanswered.add(value.subject)
        elif kind == "waiting":
            shown = [call.key for call in value if call.key in blocked]
            problems += [f"a person is asked about {key}, which is blocked" for key in shown]
        elif kind == "tool" and value.key in blocked:
            problems.append(f"{value.key} ran in spite of its gates")
        elif kind == "tool" and value.key in unanswered and not _approved(log, value.key):
            problems.append(f"{value.key} ran before anybody approved of it")
    return problems


def _approved(log: Sequence[Entry], key: str) -> bool:
    calls = [call for entry in log if entry.kind == "waiting" for call in entry.value if call.key == key]
    return bool(calls) and calls[-1].decision == Approve()


def answers(log: Sequence[Entry]) -> list[str]:
    """What waited for a person runs as it was shown, once it is approved, and not before."""
    problems: list[str] = []
    waiting: dict[str, WaitingCall] = {}
    for kind, value, _ in log:
        if kind == "waiting":
            for call in value:
                shown = waiting.get(call.key)
                if shown is not None and (shown.arguments, shown.question) != (call.arguments, call.question):
                    problems.append(f"what is asked about {call.key} has changed")
                waiting[call.key] = call
        elif kind == "tool" and value.key in waiting:
            call = waiting[value.key]
            if call.decision != Approve():
                problems.append(f"{value.key} ran, and the answer was {call.decision}")
            if dict(value.arguments) != dict(call.arguments):
                problems.append(f"{value.key} ran with other arguments than were shown")
    return problems


def guardrails(log: Sequence[Entry]) -> list[str]:
    """Nothing of a rejected answer runs; what is withheld is not kept."""
    problems: list[str] = []
    rejected: set[str] = set()
    withheld: set[str] = set()
    for kind, value, _ in log:
        if kind == "asked" and value.point == "check_answer":
            fails = value.fails and value.who != ADVISORY
            if fails or value.does in ("reject", "redact"):
                rejected.add(str(value.subject))
            if fails or value.does == "redact":
                withheld.add(str(value.subject))
        elif kind == "tool" and value.key.rpartition(":")[0] in rejected:
            problems.append(f"{value.key} of a rejected answer ran")
        elif kind == "append" and value.id in withheld:
            problems.append(f"{value.id} was withheld, and is kept")
    return problems


def order(log: Sequence[Entry]) -> list[str]:
    """Extensions are asked in the order of their installation going in, in reverse coming out, each once."""
    problems: list[str] = []
    for run in _asked(log):
        whos: dict[tuple[str, object], list[int]] = {}
        for asked in run:
            whos.setdefault((asked.point, asked.subject), []).append(asked.who)
        for (point, subject), some in whos.items():
            wanted = sorted(set(some), reverse=point in COMING_OUT)
            if point in (*GOING_IN, *COMING_OUT) and some != wanted:
                problems.append(f"at {point} of {subject} the extensions {some} were asked")
    return problems


def controls(world: World, run_id: str, result: RunResult[object] | None) -> list[str]:
    """What was accepted for a run was delivered by it, withdrawn, or is in its result; in order, and once."""
    began = next((at for at, entry in enumerate(world.log) if entry.kind == "begin_run" and entry.value == run_id), 0)
    appended = [entry.value.id for entry in world.log[began:] if entry.kind == "append"]
    mine = [each for each in world.hosts.accepted if each.run_id == run_id]
    undelivered = [] if result is None else [message.id for message in result.undelivered]
    problems: list[str] = []
    for each in mine:
        ends = appended.count(each.id), each.id in world.hosts.withdrawn, undelivered.count(each.id)
        if sum(ends) > 1 or (result is not None and sum(ends) != 1):
            problems.append(f"{each} was delivered, withdrawn, undelivered: {ends}")
    ids = {each.id for each in mine}
    problems += [f"{ident} is undelivered, and was never accepted" for ident in undelivered if ident not in ids]
    for control in ("steer", "follow_up"):
        known = list(dict.fromkeys(each.id for each in mine if each.control == control))
        for said in (appended, undelivered):
            came = [ident for ident in said if ident in known]
            if came != [ident for ident in known if ident in came]:
                problems.append(f"the {control}s {known} came as {came}")
    if result is not None and result.ok and not result.stopped_by and undelivered:
        problems.append(f"a completed run left {undelivered} undelivered")
    return problems


def delivered(world: World, run_id: str) -> list[str]:
    """Every delivery is told, and nothing else is."""
    told = [
        entry.value.message_id
        for entry in world.log
        if entry.kind == "event" and entry.value.kind == "control_delivered" and entry.value.run_id == run_id
    ]
    mine = {each.id for each in world.hosts.accepted if each.run_id == run_id}
    appended = [
        entry.value.id for entry in world.log if entry.kind == "append" and isinstance(entry.value, UserMessage)
    ]
    wanted = [ident for ident in appended if ident in mine]
    return [] if told == wanted else [f"control_delivered was told of {told}, not of {wanted}"]


def subscriptions(world: World, torn: Collection[str]) -> list[str]:
    """Every subscriber saw what an observer saw, and the end of each run once."""
    problems: list[str] = []
    for subscriber in world.hosts.subscribers:
        subscriber.read()
        since = world.log[subscriber.since :]
        begun = {entry.value for entry in since if entry.kind == "begin_run"}
        observed = [entry.value for entry in since if entry.kind == "event"]
        observed = [event for event in observed if event.agent_id == subscriber.agent_id]
        if subscriber.watched:
            problems += subscriber.problems(begun, observed, torn)
    return problems
