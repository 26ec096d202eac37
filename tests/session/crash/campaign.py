"""Kills processes that work on a store, one after another, and looks each time what they have left."""

from __future__ import annotations

import json
import os
import select
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random
from signal import SIGKILL

from gotato_py import ToolMessage, check_messages
from gotato_testkit.contracts._store_suite import differing, picture

from .clerk import Outside
from .kills import AtBytecode, killed_at_commit, within_a_write
from .places import PLACES
from .telling import Ledger, TellingStore, telling_through
from .work import Worker

LIVES = 20
"""Kills in one place, before another one is begun."""
ROUNDS = 6
MANNERS = ("bytecode", "bytecode", "commit", "commit", "time", "write")
PATIENCE = 60.0
"""Seconds after which a child that says nothing hangs."""


class Broken(Exception):
    """A promise is broken."""


class Place:
    """A store in a folder, what has to be there, and the world outside."""

    def __init__(self, name: str, folder: Path, rng: Random) -> None:
        self.name = name
        self.folder = folder
        self.rng = rng
        self.outside = Outside(folder / "outside")
        self.ledger = Ledger()
        self.judged: dict[str, int] = {}  # how many entries each session had when it was looked at last
        folder.mkdir(parents=True)

    def kill(self, counts: Counter[str]) -> None:
        """Forks a process that works, kills it, and reads what it told."""
        manner = self.rng.choice(MANNERS)
        seed = self.rng.random()
        delay = self.rng.uniform(0, 0.06)
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            self._child(writing, manner, Random(seed))
        os.close(writing)
        told = self._listen(reading, pid, delay if manner == "time" else PATIENCE)
        os.close(reading)
        _, status = os.waitpid(pid, 0)
        for line in told.split(b"\n")[:-1]:  # the last one is empty, or was cut off
            self.ledger.tell(*json.loads(line))
        if os.WIFSIGNALED(status):
            counts[manner] += 1
        elif os.WEXITSTATUS(status):
            raise Broken(f"a process failed ({manner}): {(self.folder / 'failed').read_text('utf-8')}")
        else:
            counts["done before"] += 1

    def _listen(self, pipe: int, pid: int, delay: float) -> bytes:
        """What the process tells until it is dead, which it is after so many seconds."""
        told: list[bytes] = []
        end = time.monotonic() + delay
        while True:
            ready, _, _ = select.select([pipe], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                os.kill(pid, SIGKILL)
                if delay == PATIENCE:
                    os.waitpid(pid, 0)
                    raise Broken(f"a process did not end within {PATIENCE} s")
                end = time.monotonic() + PATIENCE
                continue
            piece = os.read(pipe, 1 << 20)
            if not piece:
                return b"".join(told)
            told.append(piece)

    def _child(self, pipe: int, manner: str, rng: Random) -> None:
        """Works, and never returns."""
        code = 1
        try:
            store = PLACES[self.name](self.folder, rng)
            tell = telling_through(pipe)
            if manner == "commit":
                tell = killed_at_commit(tell, rng)
            worker = Worker(TellingStore(store, tell), self.outside, rng)
            if manner == "bytecode":
                lines = rng.randint(1, 300) if rng.random() < 0.25 else rng.randint(1, 6000)
                AtBytecode(lines, rng.randint(0, 25)).watch()
            elif manner == "write":
                within_a_write(self.folder, rng)
            worker.work(ROUNDS)
            code = 0
        except BaseException:
            (self.folder / "failed").write_text(traceback.format_exc(), "utf-8")
        finally:
            os._exit(code)

    def judge(self, *, finish: bool) -> None:
        """Looks at everything, and, with `finish`, does the work that was begun."""
        store = TellingStore(PLACES[self.name](self.folder, self.rng), self.ledger.tell)
        listed = [each.id for each in store.list()]
        place = {id: _entries(store, id) for id in listed}
        wrong = self.ledger.found(place)
        if wrong:
            raise Broken(wrong)
        for id, entries in place.items():
            if finish or self.judged.get(id) != len(entries) or self.rng.random() < 0.1:
                self._judge_session(store, id, finish=finish)
            self.judged[id] = len(self.ledger.kept[id])
        self._judge_outside()
        close = getattr(store._store, "close", None)
        if close is not None:
            close()

    def _judge_session(self, store: TellingStore, id: str, *, finish: bool) -> None:
        with store.open(id, read_only=True) as reader:
            foretold, history = len(reader.check()), len(reader.history)
            completed = {each.metadata.get("tool_update") for each in reader.history}
        if not finish and self.rng.random() < 0.5:
            return  # so that the next process has to mend it, and may be killed at that
        with store.open(id) as session:
            problems = [*session.check(), *([] if session.waiting else check_messages(session.messages))]
            if problems:
                raise Broken(f"opened, {id} has problems: {problems}")
            new = [each for each in session.history[history:] if isinstance(each, ToolMessage)]
            held = [each for each in session.history if each.metadata.get("tool_update", None) not in completed]
            if len(new) != foretold or len(session.history) != history + len(new) + len(held):
                raise Broken(f"opened, {id} has {len(session.history)} messages after {history}, {foretold} foretold")
            before = picture(session)
        if not finish and self.rng.random() < 0.7:
            return
        with store.open(id) as session:
            if wrong := differing(before, picture(session)):
                raise Broken(f"opened twice, {id} differs in {wrong}")
            if finish:
                Worker(store, self.outside, self.rng, alone=True).finish(session)

    def _judge_outside(self) -> None:
        """No call was made twice, no item was paid twice, and every result says what is true."""
        paid = self.outside.paid()
        keys, items = Counter(key for key, _ in paid), Counter(item for _, item in paid)
        twice = [each for each in (*keys, *items) if keys[each] > 1 or items[each] > 1]
        if twice:
            raise Broken(f"paid twice: {twice}")
        for id, entries in self.ledger.kept.items():
            own: set[str] = set()
            for entry in entries:
                message = entry.get("message", {})
                if message.get("role") == "assistant":
                    own.add(message["id"])
                    reads = {f"{message['id']}:{at}" for at, each in enumerate(message.get("tool_calls", ()))
                             if each["name"] == "look_up"}  # fmt: skip
                    own |= reads
                elif message.get("role") == "tool":
                    result = message["result"]
                    key, status = result["key"], result["status"]
                    if key.rpartition(":")[0] not in own or key in own:
                        continue
                    count = keys[key]
                    if (status in ("ok", "pending") and count != 1) or (status in ("not_run", "blocked") and count):
                        raise Broken(f"a result of {id} says {status}, and its call was made {count} times")


def _entries(store: TellingStore, id: str) -> list[dict[str, object]]:
    journal = store._store.open_journal(id, "judge", True, False)
    try:
        return journal.entries()
    finally:
        journal.close()


def campaign(name: str, folder: Path, kills: int, seed: int) -> Counter[str]:
    """So many kills of one store. Raises `Broken`, with the seed that shows it again."""
    counts: Counter[str] = Counter()
    done = 0
    for number in range(-(-kills // LIVES)):
        rng = Random(f"{name} {seed} {number}")
        place = Place(name, folder / f"{name}-{seed}-{number}", rng)
        try:
            for _ in range(min(LIVES, kills - done)):
                place.kill(counts)
                place.judge(finish=rng.random() < 0.15)
                done += 1
            place.judge(finish=True)
        except Broken as error:
            error.add_note(f"{name}, seed {seed}, place {number}, kill {done}: in {place.folder}")
            raise
        counts["commits"] += place.ledger.commits
        counts["payments"] += len(place.outside.paid())
    return counts
