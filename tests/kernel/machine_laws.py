"""The invariants of the contract, read from the log of a `World` and from its transcript, and from nothing else."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from gotato_py import (
    AssistantMessage,
    Message,
    ReasoningPart,
    StopReason,
    TextPart,
    ToolMessage,
    ToolResultStatus,
    WaitingCall,
    check_messages,
)

from .machine_deeds import UNFINISHED
from .machine_fakes import open_calls
from .machine_grammar import events, torn_runs
from .machine_promises import answers, gates, guardrails, order, subscriptions
from .machine_tools import settle
from .machine_words import Entry, Make
from .machine_world import World

INCOMPLETE = (StopReason.MAX_TOKENS, StopReason.CANCELLED, StopReason.ERROR)


def check(world: World, *, closed: bool = True) -> None:
    """Asserts everything; with `closed`, also that nothing but what waits is left open, in the transcript or among the
    events."""
    log, messages = world.log, list(world.kept.messages)
    killed = {entry.value for entry in log if entry.kind == "killed"}
    unstored = any(entry.kind == "end_run" and entry.value.error == "store_failure" for entry in log)
    torn = unstored or bool(killed)
    problems = [entry.value for entry in log if entry.kind == "wrong"]
    problems += pairing(messages, open_tail=True)
    problems += tail(messages, world.kept.waiting, torn=torn) if closed else []
    problems += [problem for message in messages for problem in contents(message)]
    problems += identities(messages)
    problems += replayed(log, messages)
    problems += [problem for entry in log if entry.kind in ("request", "rewritten") for problem in request(entry)]
    problems += offered(log, world.makes)
    problems += commits(log)
    problems += running(log, world.makes)
    problems += effects(log)
    problems += events(log, world.known, closed=closed, killed=killed)
    problems += records(log, closed=closed, killed=killed)
    problems += [*gates(log), *guardrails(log), *order(log), *answers(log)]
    problems += [*status(world, torn=torn), *subscriptions(world, torn_runs(log))] if closed else []
    if closed and world.model.open:
        problems.append("5: a stream of the model was left open")
    abandoned = sum(len(agent.abandoned) for agent in world.agents)
    if (left := settle(abandoned)) > abandoned:
        problems.append(f"5: {left} worker threads are left, of which {abandoned} are said to be abandoned")
    assert not problems, "\n".join([*problems, "", *outline(world)])


def outline(world: World) -> list[str]:
    """The log in lines, for a failure."""
    lines = []
    for kind, value, size in world.log:
        said: object = value
        if kind == "event":
            said = json.dumps(value.to_dict())
        elif kind == "tool":
            said = f"{value.key} {value.name} {dict(value.arguments)}"
        elif kind in ("request", "rewritten"):
            said = [f"{each.role} {each.id}" for each in value]
        lines.append(f"{size:3} {kind}: {said}")
    return lines


# 1: pairing


def pairing(messages: Sequence[Message], *, open_tail: bool = False, in_order: bool = False) -> list[str]:
    """Each call has one result, right after its message; `in_order` asks for the order of the calls too."""
    problems: list[str] = []
    index = 0
    while index < len(messages):
        message = messages[index]
        index += 1
        if isinstance(message, ToolMessage):
            problems.append(f"1: the result {message.result.key} has no call before it")
        if not isinstance(message, AssistantMessage):
            continue
        results = []
        while index < len(messages) and isinstance(each := messages[index], ToolMessage):
            results.append(each.result)
            index += 1
        wanted = {f"{message.id}:{place}": call.id for place, call in enumerate(message.tool_calls)}
        got = [result.key for result in results]
        missing = [key for key in wanted if key not in got]
        if missing and not (open_tail and index == len(messages)):
            problems.append(f"1: no result for {missing}")
        problems += [f"1: {key} has {count} results" for key, count in Counter(got).items() if count > 1]
        problems += [f"1: the result {key} answers no call of {message.id}" for key in got if key not in wanted]
        if in_order and got != list(wanted):
            problems.append(f"1: the results {got} are not in the order of the calls")
        problems += [
            f"1: {result.key} names another call id" for result in results if wanted.get(result.key) != result.call_id
        ]
    return problems


def waits(opened: Sequence[str], waiting: Sequence[WaitingCall], *, torn: bool) -> bool:
    """Whether what is open waits: the first of the calls does. Where a kill or a failing store has torn a batch between
    its results, calls that never waited may be before it: they stay open until the batch goes on."""
    records = {record.key for record in waiting}
    return any(key in records for key in (opened if torn else opened[:1]))


def tail(messages: Sequence[Message], waiting: Sequence[WaitingCall], *, torn: bool) -> list[str]:
    """What is left open waits: the first of the open calls does, and all behind it are open."""
    keys = open_calls(messages)
    excused = torn and waits(keys, waiting, torn=torn)
    problems = [] if excused else [f"1: {problem}" for problem in check_messages(messages, waiting)]
    opened = [int(key.rpartition(":")[2]) for key in keys]
    if opened != list(range(min(opened, default=0), min(opened, default=0) + len(opened))):
        problems.append(f"1: the open calls {opened} have results between them")
    return problems


def status(world: World, *, torn: bool) -> list[str]:
    """An agent without a run waits if the first of the open calls does, is idle, or was closed."""
    left = waits(open_calls(world.kept.messages), world.kept.waiting, torn=torn)
    wanted = "waiting" if left else "idle"
    return [] if world.agent.status in (wanted, "closed") else [f"the status is {world.agent.status}, not {wanted}"]


def request(entry: Entry) -> list[str]:
    """A request is valid history, as long as the transcript, and ends where a model may answer."""
    messages: tuple[Message, ...] = entry.value
    problems = [f"1: {problem}" for problem in check_messages(messages)]
    problems += pairing(messages, in_order=True)
    problems += [problem for message in messages for problem in contents(message)]
    if entry.kind == "rewritten":
        return problems
    last = messages[-1] if messages else None
    if last is None or (isinstance(last, AssistantMessage) and last.stop_reason is not StopReason.PAUSE):
        problems.append("1: a request ends with an answer, or holds nothing")
    if len(messages) - entry.size not in (0, 1):
        problems.append(f"1: a request of {len(messages)} messages, of a transcript of {entry.size}")
    return problems


def offered(log: Sequence[Entry], makes: Mapping[str, Make]) -> list[str]:
    """A request offers the fixed tools and those that the source gave last, and nothing else but `final_answer`."""
    problems: list[str] = []
    given: list[str] = []
    make = Make()
    for kind, value, _ in log:
        if kind == "begin_run":
            make = makes[value]
        elif kind == "offer":
            given = value
        elif kind == "offered" and (value or not make.limits.wrap_up):
            wanted = {"act", "add", "slow", "solo", *(given if make.sourced else ())}
            if {*value} - {"final_answer"} != wanted or len({*value}) != len(value):
                problems.append(f"the model was offered {value}, not {sorted(wanted)}")
    return problems


# 2: contents


def contents(message: Message) -> list[str]:
    """No answer is empty; a cut one has no calls and no unfinished reasoning."""
    if not isinstance(message, AssistantMessage):
        return []
    problems = []
    said = [part for part in message.parts if not isinstance(part, ReasoningPart)]
    if not message.tool_calls and not any(not isinstance(part, TextPart) or part.text.strip() for part in said):
        problems.append(f"2: {message.id} is empty")
    if message.stop_reason in (StopReason.CANCELLED, StopReason.ERROR):
        if message.tool_calls:
            problems.append(f"2: the interrupted {message.id} has calls")
        if any(UNFINISHED in part.text for part in message.parts if isinstance(part, ReasoningPart)):
            problems.append(f"2: the interrupted {message.id} keeps unfinished reasoning")
    return problems


def identities(messages: Sequence[Message]) -> list[str]:
    """Every committed message has an id of its own."""
    counts = Counter(message.id for message in messages)
    return [f"the id {ident!r} stands {count} times" for ident, count in counts.items() if count > 1 or not ident]


def replayed(log: Sequence[Entry], messages: Sequence[Message]) -> list[str]:
    """The transcript is what was appended, and summaries in the place of what they cover: nothing else ever changed."""
    kept: list[Message] = []
    for kind, value, _ in log:
        if kind == "append":
            kept.append(value)
        elif kind == "replace":
            at = [message.id for message in kept].index(value.through)
            kept[: at + 1] = [value.summary]
    return [] if kept == list(messages) else [f"the transcript {messages} is not what was committed: {kept}"]


# 3: the order of commits


def commits(log: Sequence[Entry]) -> list[str]:
    """What an event or a tool relies on was committed before it."""
    problems: list[str] = []
    appended: dict[str, Message] = {}
    calls: set[str] = set()
    marked: set[str] = set()
    for kind, value, _ in log:
        if kind == "append":
            appended[value.id] = value
            if isinstance(value, AssistantMessage):
                calls |= {f"{value.id}:{index}" for index in range(len(value.tool_calls))}
        elif kind == "started":
            marked.add(value)
            if value not in calls:
                problems.append(f"3: {value} is marked before its message is there")
        elif kind == "tool" and (value.key not in calls or value.key not in marked):
            problems.append(f"3: {value.key} ran before its message or its mark was there")
        elif kind == "event":
            problems += _announced(value, appended, marked)
    return problems


def _announced(event: Any, appended: Mapping[str, Message], marked: set[str]) -> list[str]:
    if event.kind in ("message_end", "tool_result_committed"):
        kept = appended.get(event.message.id)
        return [] if kept == event.message else [f"3: {event.kind} of {event.message.id} before its commit"]
    if event.kind == "tool_execution_start" and event.key not in marked:
        return [f"3: {event.key} is announced before it is marked"]
    return []


def running(log: Sequence[Entry], makes: Mapping[str, Make]) -> list[str]:
    """No more tools run at once than may, a sequential one alone; each result is committed before another starts."""
    problems: list[str] = []
    now: dict[str, str] = {}
    done: set[str] = set()
    most: float = 1
    for kind, value, _ in log:
        if kind == "begin_run":
            limit = makes[value].limits.max_parallel_tools
            now, most = {}, inf if limit is None else max(1, limit)
        elif kind == "append" and isinstance(value, ToolMessage):
            done.add(value.result.key)
            now.pop(value.result.key, None)
        elif kind == "tool" and value.key not in done:  # one that was given up may begin late
            now[value.key] = value.name
            if len(now) > most or (len(now) > 1 and "solo" in now.values()):
                problems.append(f"3: {now} run at once")
    return problems


# 6: effects


def effects(log: Sequence[Entry]) -> list[str]:
    """No call runs twice, none of an incomplete message; and no result says what is not so."""
    problems: list[str] = []
    ran = Counter(entry.value.key for entry in log if entry.kind == "tool")
    marked = Counter(entry.value for entry in log if entry.kind == "started")
    problems += [f"6: {key} ran {count} times" for key, count in ran.items() if count > 1]
    problems += [f"6: {key} was marked {count} times" for key, count in marked.items() if count > 1]
    changed = {entry.value.subject for entry in log if entry.kind == "asked" and entry.value.point == "after_tool"}
    for kind, value, _ in log:
        if kind != "append":
            continue
        if isinstance(value, AssistantMessage) and value.stop_reason in INCOMPLETE:
            keys = [f"{value.id}:{index}" for index in range(len(value.tool_calls))]
            problems += [f"6: {key} of an incomplete message ran" for key in keys if ran[key]]
        if isinstance(value, ToolMessage):
            result = value.result
            taken = "final_answer" in result.metadata
            if result.executed is True and not ran[result.key] and not taken:
                problems.append(f"6: {result.key} is said to have run")
            if result.executed is False and (ran[result.key] or marked[result.key]):
                problems.append(f"6: {result.key} ran or may have run, and is said not to have")
            if result.status in (ToolResultStatus.CANCELLED, ToolResultStatus.TIMED_OUT) and not marked[result.key]:
                problems.append(f"6: {result.key} never started, and its effect is said to be unknown")
            if result.executed is not True and not result.text.strip() and result.key not in changed:
                problems.append(f"6: {result.key} does not say what became of it")
    return problems


def records(log: Sequence[Entry], *, closed: bool, killed: set[str]) -> list[str]:
    """The transcript is told of the end of every run that it was told the beginning of, once."""
    begun = [entry.value for entry in log if entry.kind == "begin_run"]
    ended = Counter(entry.value.run_id for entry in log if entry.kind == "end_run")
    problems = []
    if not any(entry.kind == "interrupt" for entry in log):  # one may come just before begin_run or just after end_run
        problems += [f"end_run came {count} times for {run_id}" for run_id, count in ended.items() if count > 1]
        problems += [f"end_run came for {run_id}, which never began" for run_id in ended if run_id not in begun]
    missing = [run_id for run_id in begun if not ended[run_id] and run_id not in killed]
    return problems + ([f"end_run never came for {missing}"] if missing and (closed or len(missing) > 1) else [])
