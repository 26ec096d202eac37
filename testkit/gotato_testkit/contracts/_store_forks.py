"""What every Store promises of forks: what is common is shared, and each goes on apart."""

from __future__ import annotations

from gotato_py import (
    Agent,
    AssistantMessage,
    Busy,
    InvalidState,
    NotFound,
    RunRecord,
    ToolMessage,
    Usage,
    UserMessage,
    WaitingCall,
    check_messages,
)
from gotato_session import Session
from gotato_testkit.answers import call, say
from gotato_testkit.fakes import FakeTool
from gotato_testkit.scripted import ScriptedModel
from gotato_testkit.steps import Do

from ._histories import batch, settle
from ._store_suite import FORKS, KEEPS, NEW_IDS, OPENS, StoreSuite, differing, new_id, picture, refused
from ._suite import after, require

_SHARED = "a fork begins with everything that was committed, and goes on apart (Session.fork)"
_REMEDY = "keep the fork's head as it is given; its own entries are numbered from at + 1"
_RUNS = "a fork during a run is the committed prefix; its open calls are closed in the fork only (Session.fork)"


class ForksContract(StoreSuite):
    """Forks, and forks of forks."""

    @after(OPENS, KEEPS)
    def test_a_fork_begins_with_what_is_common(self) -> None:
        """Both go on apart, and are opened again as they were; runs and usage are each one's own."""
        with self._place(_SHARED, _REMEDY) as place:
            id, fork_id = new_id(), new_id()
            with place.create(id, metadata={"a": 1}) as session:
                first = session.append(UserMessage("one"))
                session.label("here", first.id)
                session.mark_started("elsewhere:0")
                session.end_run(_run("run-1"))
                with session.fork(id=fork_id, owner="the forker") as fork:
                    common = ([each.text for each in fork.history], dict(fork.labels), fork.get("a"))
                    own = (fork.parent_id, fork.runs, fork.usage, sorted(fork.started), fork.lease is not None)
                    fork.append(AssistantMessage("two, in the fork"))
                    session.append(AssistantMessage("two"))
                    fork.set("a", 2)
                    fork.end_run(_run("run-2"))
                    pictures = [picture(session), picture(fork)]
            found: list[str] = []
            for name in (fork_id, id):
                with place.open(name) as again:
                    found.append(differing(pictures[name == fork_id], picture(again)))
        shared = (["one"], {"here": first.id}, 1)
        require(common == shared, _SHARED, found="a fork that begins with something else", remedy=_REMEDY)
        expected = (id, (), Usage(), ["elsewhere:0"], True)
        require(own == expected, _SHARED, found="another parent_id, usage, runs, marks or lease", remedy=_REMEDY)
        for which, differs in zip(("the fork", "the parent"), found, strict=True):
            require(not differs, _SHARED, found=f"opened again, {which} differs in: {differs}", remedy=_REMEDY)

    @after(OPENS, KEEPS, FORKS)
    def test_a_fork_of_a_fork_has_what_all_had(self) -> None:
        """Whatever its ancestors did after it, in whichever order they are opened."""
        with self._place(_SHARED, _REMEDY) as place:
            ids = [new_id() for _ in range(4)]
            sessions = [place.create(ids[0])]
            sessions[0].append(UserMessage("0"))
            for number in (1, 2, 3):
                sessions.append(sessions[-1].fork(id=ids[number]))
                place.sessions.append(sessions[-1])
                for each in sessions:
                    role = UserMessage if number % 2 else AssistantMessage
                    each.append(role(f"{number} in {sessions.index(each)}"))
            pictures = [picture(each) for each in sessions]
            for each in sessions:
                each.close()
            found: list[str] = []
            for number in (3, 1, 0, 2):
                with place.open(ids[number], read_only=number % 2 == 0) as again:
                    found.append(differing(pictures[number], picture(again)))
        differs = ", ".join(each for each in found if each)
        require(not differs, _SHARED, found=f"opened again, one of four generations differs in: {differs}",
                remedy=_REMEDY)  # fmt: skip

    @after(OPENS, KEEPS, FORKS, NEW_IDS)
    def test_a_fork_may_begin_anywhere(self) -> None:
        """At an entry, also of a branch that was left; at the beginning; but not at what is not there."""
        with self._place(_SHARED, _REMEDY) as place:
            id = new_id()
            made: list[tuple[str, dict[str, object]]] = []
            with place.create(id) as session:
                first = session.append(UserMessage("one"))
                left = session.append(AssistantMessage("two"))
                session.branch(first.id)
                session.append(AssistantMessage("otherwise"))
                texts: list[list[str]] = []
                for at in (None, left.id, first.id, ""):
                    with session.fork(at) as fork:
                        texts.append([each.text for each in fork.history])
                        made.append((fork.id, picture(fork)))
                refused(lambda: session.fork("nobody"), NotFound, _SHARED, "a fork at an unknown entry", _REMEDY)
                taken = made[0][0]
                refused(
                    lambda: session.fork(id=taken), InvalidState, _SHARED, "a fork with an id that is taken", _REMEDY
                )
            found: list[str] = []
            for fork_id, before in made:
                with place.open(fork_id) as again:
                    found.append(differing(before, picture(again)))
        require(
            texts == [["one", "otherwise"], ["one", "two"], ["one"], []],
            _SHARED,
            found="a fork that begins elsewhere",
            remedy=_REMEDY,
        )
        differs = ", ".join(each for each in found if each)
        require(not differs, _SHARED, found=f"opened again, a fork differs in: {differs}", remedy=_REMEDY)

    @after(OPENS, KEEPS, FORKS, NEW_IDS)
    def test_calls_that_are_open_are_closed_in_the_fork_only(self) -> None:
        """There nothing waits either; in the session they are as open as they were."""
        with self._place(_RUNS, _REMEDY) as place:
            id = new_id()
            with place.create(id) as session:
                keys = batch(session, 3)
                settle(session, keys[:1])
                session.mark_started(keys[1])
                session.mark_waiting([WaitingCall(keys[2], "c2", "find")])
                before = picture(session)
                with session.fork() as fork:
                    statuses = [str(each.result.status) for each in fork.history if isinstance(each, ToolMessage)]
                    problems = [*fork.check(), *check_messages(fork.messages)]
                    waits, told, fork_id = len(fork.waiting), picture(fork), fork.id
                changed = differing(before, picture(session))
                settle(session, keys[1:])
            with place.open(fork_id) as again:
                differs = differing(told, picture(again))
        sound = statuses == ["ok", "cancelled", "not_run"] and not problems and waits == 0
        require(sound, _RUNS, found=f"results {statuses}, {waits} calls that wait", remedy=_REMEDY)
        require(not changed, _RUNS, found=f"the session itself differs in: {changed}", remedy=_REMEDY)
        require(not differs, _RUNS, found=f"opened again, the fork differs in: {differs}", remedy=_REMEDY)

    @after(OPENS, KEEPS, FORKS, NEW_IDS)
    def test_a_session_is_forked_during_a_run(self) -> None:
        """The run goes on as if nothing was; the fork can be talked to at once; a branch would be Busy."""
        with self._place(_RUNS, _REMEDY) as place:
            session = place.create(new_id())
            forks: list[Session] = []

            def fork() -> str:
                forks.append(session.fork())
                place.sessions.append(forks[0])
                refused(lambda: session.branch(""), Busy, "a branch during a run is Busy (Session.branch)",
                        "branch()", "derive from StoreBase")  # fmt: skip
                return "forked"

            model = ScriptedModel([call("first") + call("fork") + call("last"), say("Done.")])
            tools = [FakeTool("first", "1"), FakeTool("fork", Do(fork)), FakeTool("last", "3")]
            text = Agent(model, tools=tools, transcript=session).run("Go.").text
            other = Agent(ScriptedModel([say("Here too.")]), transcript=forks[0]).run("And you?").text
            mine = [str(each.result.status) for each in session.history if isinstance(each, ToolMessage)]
            theirs = [str(each.result.status) for each in forks[0].history if isinstance(each, ToolMessage)]
            runs = (len(session.runs), len(forks[0].runs))
        sound = (text, other, runs) == ("Done.", "Here too.", (1, 1))
        require(sound, _RUNS, found="one of the two runs went wrong", remedy=_REMEDY)
        expected = (["ok", "ok", "ok"], ["ok", "cancelled", "not_run"])
        require((mine, theirs) == expected, _RUNS, found=f"{mine} in the session, {theirs} in the fork", remedy=_REMEDY)

    @after(OPENS, FORKS, NEW_IDS)
    def test_a_session_with_forks_is_not_removed(self) -> None:
        """Its forks need it; once they are gone it can go."""
        promise = "delete() of a session that has forks is InvalidState (Store.delete)"
        with self._place(promise) as place:
            id = new_id()
            with place.create(id) as session:
                session.append(UserMessage("one"))
                with session.fork() as fork, fork.fork() as second:
                    ids = (second.id, fork.id)
            remedy = "name the parent in each summary: StoreBase.delete looks there"
            refused(lambda: place.store().delete(id), InvalidState, promise, "delete()", remedy)
            with place.open(ids[0]) as second:
                count = len(second.history)
            for each in (*ids, id):
                place.store().delete(each)
        require(count == 1, promise, found=f"then the fork has {count} of 1 messages", remedy="change nothing")


def _run(run_id: str) -> RunRecord:
    return RunRecord(run_id, "a-1", "completed", "", 1e9, 1.0, 1, 0, Usage(3, 4))
