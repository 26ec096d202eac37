"""`gotato session list|show|fork|export|check`, on a folder and on a database."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from gotato_cli._session import utc
from gotato_py import AssistantMessage, ToolCall, ToolMessage, UserMessage
from gotato_session import MemoryStore
from gotato_session.exporting import import_session

from . import places
from .places import Desk, each_store
from .world import Gotato

desk = each_store(places.desk)


# ---- where the store is


def test_the_store_has_to_be_named(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --store and GOTATO_STORE the command is a mistake; either will do, and --store wins."""
    done = desk("session", "list", place=False)
    assert (done.code, done.out) == (2, "")
    assert "--store PATH, or GOTATO_STORE" in done.err
    desk.fill()
    monkeypatch.setenv("GOTATO_STORE", str(desk.path))
    assert desk("session", "list", "--json", place=False).json["id"] == "s-1"
    monkeypatch.setenv("GOTATO_STORE", "/nowhere")
    assert desk("session", "list", "--json").json["id"] == "s-1"


def test_a_store_that_is_not_there_is_told(desk: Desk) -> None:
    """Looking makes nothing."""
    done = desk("session", "list")
    assert (done.code, done.out, done.err) == (1, "", f"gotato: there is no store at {desk.path}\n")
    assert not desk.path.exists()


@pytest.mark.parametrize("name", ["s.db", "s.sqlite", "s.sqlite3", "plain"])
def test_what_a_path_means(desk: Desk, tmp_path: Path, name: str) -> None:
    """A database is told by its ending or by its content, a folder by being one; any other file is no store."""
    desk.path = tmp_path / "x.db"
    desk.fill()
    (tmp_path / name).write_bytes(desk.path.read_bytes())
    desk.path = tmp_path / name
    assert desk("session", "list", "--json").json["id"] == "s-1"
    desk.path = tmp_path / "folder.db"
    desk.path.mkdir()
    assert desk("session", "list") == (0, "", "")
    desk.path = tmp_path / "text"
    desk.path.write_text("hello", "utf-8")
    done = desk("session", "list")
    assert (done.code, "neither a folder nor a database" in done.err) == (2, True)


def test_a_database_of_others_is_left_alone(desk: Desk, tmp_path: Path) -> None:
    """It is told in one line, with code 1, and not changed."""
    desk.path = tmp_path / "other.db"
    connection = sqlite3.connect(desk.path)
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()
    before = desk.path.read_bytes()
    done = desk("session", "list")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert desk.path.read_bytes() == before


def test_a_file_that_cannot_be_read_is_a_mistake(desk: Desk, tmp_path: Path) -> None:
    """The reason of the system is told."""
    desk.path = tmp_path / "missing" / "x"
    (tmp_path / "missing").write_text("a file", "utf-8")
    done = desk("run", "--session", "s-1", "hi")
    assert done.code in (1, 2)
    assert done.err.count("\n") == 1


# ---- list


def test_the_list(desk: Desk) -> None:
    """Each session is a line: when it was changed, how much it holds, its id, its parent, its metadata."""
    desk.fill("s-1", tenant="a\u009bb")
    with desk.session() as session, session.fork(id="s-2"):
        pass
    done = desk("session", "list")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert len(lines) == 2
    (first,) = [line for line in lines if "fork" not in line]
    assert " messages " in first
    assert " s-1  {" in first
    assert '"tenant": "a b"' in first
    assert any(line.endswith("}") and "s-2  (fork of s-1)" in line for line in lines)


def test_the_list_as_json(desk: Desk) -> None:
    """--json prints an object a line, with what a summary says."""
    desk.fill("s-1", tenant=7)
    (told,) = desk("session", "list", "--json").lines
    assert list(told) == ["id", "parent_id", "created_at", "updated_at", "size", "messages", "metadata"]
    assert (told["id"], told["parent_id"], told["metadata"]["tenant"]) == ("s-1", "", 7)
    assert told["messages"] == 15
    assert told["size"] > 1000
    assert told["updated_at"] >= told["created_at"]


def test_the_list_can_be_narrowed(desk: Desk) -> None:
    """--where takes JSON or text, several of them together; --limit is how many, those changed last first."""
    given: list[dict[str, object]] = [{"n": 1, "who": "me"}, {"n": 2, "who": "me"}, {"n": "2"}]
    for number, metadata in enumerate(given):
        with desk.store() as store:
            store.create(f"s-{number}", metadata=metadata).close()

    def found(*argv: str) -> set[str]:
        return {each["id"] for each in desk("session", "list", "--json", *argv).lines}

    assert found("--where", "who=me") == {"s-0", "s-1"}
    assert found("--where", "n=2") == {"s-1"}
    assert found("--where", 'n="2"') == {"s-2"}
    assert found("--where", "who=me", "--where", "n=1") == {"s-0"}
    assert found("--where", "who=you") == set()
    assert len(found("--limit", "2")) == 2
    assert found("--limit", "0") == set()
    assert len(found("--limit", str(10**30))) == 3
    with desk.session("s-0") as session:
        session.set("late", True)
    assert found("--limit", "1") == {"s-0"}


@pytest.mark.parametrize(
    "argv",
    [
        ["list", "--where", "n"],
        ["list", "--where", "=2"],
        ["list", "--limit", "-1"],
        ["list", "--limit", "x"],
        ["show"],
        ["export", "s-1", "--format", "pdf"],
        ["dance"],
        [],
        ["show", "../etc"],
        ["fork", "s-1", "--id", "a b"],
        ["export", "s-1", "--format", "html", "--json"],
    ],
)
def test_a_mistake_is_code_2(desk: Desk, argv: list[str]) -> None:
    """What cannot be meant is told on stderr; stdout stays empty."""
    desk.fill()
    done = desk("session", *argv)
    assert (done.code, done.out) == (2, "")
    assert done.err


def test_ctrl_c_ends_a_list(desk: Desk) -> None:
    """After an interrupt no more sessions are listed."""
    desk.fill()
    desk.interrupts.note()
    assert desk("session", "list") == (130, "", "")


# ---- show


def test_show_is_text(desk: Desk) -> None:
    """What happened in the branch can be read, with labels, questions and keys; long results are cut unless --full."""
    desk.fill()
    done = desk("session", "show", "s-1")
    assert (done.code, done.err) == (0, "")
    for words in ("this branch ends at: `a4`", "labels: `sunny` at `a2`", "Pay 9?", "`a4:0`", "> Look at Oslo"):
        assert words in done.out
    with desk.session("s-2") as session:
        session.append(AssistantMessage("", [ToolCall("c", "look", f'"{"x" * 5000}"')]))
    assert "left out here" in desk("session", "show", "s-2").out
    assert "x" * 5000 in desk("session", "show", "--full", "s-2").out


def test_show_as_json(desk: Desk) -> None:
    """--json prints one object with the messages of the branch and what stands beside them."""
    desk.fill()
    told = desk("session", "show", "s-1", "--json").json
    assert (told["id"], told["parent_id"], told["leaf"]) == ("s-1", "", "a4")
    assert told["path"][-1] == "a4"
    assert "u3" in told["leaves"]
    assert told["labels"] == {"sunny": "a2", "start": ""}
    ids = [each["id"] for each in told["messages"]]
    assert [*ids[:8], *ids[9:]] == ["u1", "a1", "t1", "t2", "a2", "u2", "a3", "t3", "u4", "a4"]
    assert told["messages"][8]["metadata"] == {"tool_update": "a3:0"}
    assert (told["waiting"][0]["key"], told["waiting"][0]["question"]) == ("a4:0", "Pay 9?")
    assert (told["compactions"][0]["through"], told["runs"][0]["run_id"]) == ("a2", "r-1")
    assert (told["usage"]["input_tokens"], told["recovered"]) == (7, [])
    with desk.session("s-2"):
        pass
    assert desk("session", "show", "s-2", "--json").json["leaf"] == ""


def test_looking_asks_for_no_lease_and_changes_nothing(desk: Desk) -> None:
    """While another writes, a session can be listed, shown, exported, checked and inspected."""
    desk.fill()
    with desk.session() as session:
        before = len(session.tree)
        for argv in (["list"], ["show", "s-1"], ["export", "s-1"], ["check", "s-1"]):
            assert desk("session", *argv).code == 0
        assert desk("context", "inspect", "s-1").code == 0
        assert len(session.tree) == before


@pytest.mark.parametrize("action", ["show", "fork", "export", "check", "resume"])
def test_a_session_that_is_not_there(desk: Desk, action: str) -> None:
    """It is told in one line, with code 1."""
    desk.fill()
    done = desk("session", action, "s-9")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert "there is no session" in done.err
    assert "s-9" in done.err


# ---- fork


def test_a_fork_is_made_and_named(desk: Desk) -> None:
    """Its id is printed; it goes on from the newest entry, another entry, or a label."""
    desk.fill()
    done = desk("session", "fork", "s-1")
    assert (done.code, done.err) == (0, "")
    told = desk("session", "show", done.out.strip(), "--json").json
    assert (told["parent_id"], told["waiting"]) == ("s-1", [])
    made = desk("session", "fork", "s-1", "--at", "u2", "--id", "s-2", "--json").json
    assert made == {"id": "s-2", "parent_id": "s-1", "at": "u2"}
    assert desk("session", "show", "s-2", "--json").json["leaf"] == "u2"
    assert desk("session", "fork", "s-1", "--at", "sunny", "--json").json["at"] == "a2"


def test_a_fork_that_cannot_be(desk: Desk) -> None:
    """A place that is not there, and an id that is taken, are told; nothing is made."""
    desk.fill()
    for argv, words in ((["--at", "nowhere"], "no entry with the id 'nowhere'"), (["--id", "s-1"], "s-1")):
        done = desk("session", "fork", "s-1", *argv)
        assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
        assert words in done.err
    assert len(desk("session", "list").out.splitlines()) == 1


# ---- export


def test_an_export_can_be_imported(desk: Desk) -> None:
    """The JSON is one line, on stdout or in a file, and makes the same session in another store."""
    desk.fill()
    done = desk("session", "export", "s-1")
    assert (done.code, done.err) == (0, "")
    assert done.json == desk("session", "export", "s-1", "--json").json
    made = import_session(MemoryStore(), done.json)
    with desk.session() as session:
        assert list(made.history) == list(session.history)
    file = desk.path.parent / "out.json"
    done = desk("session", "export", "s-1", "-o", str(file))
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("wrote ")
    assert json.loads(file.read_text("utf-8"))["id"] == "s-1"


@pytest.mark.parametrize(("form", "words"), [("markdown", "# Session `s-1`"), ("html", "<!doctype html>")])
def test_a_transcript_can_be_exported(desk: Desk, form: str, words: str) -> None:
    """Markdown and HTML go to stdout or into a file; with --json the command tells of the file."""
    desk.fill()
    shown = desk("session", "export", "s-1", "--format", form)
    assert (shown.code, shown.out.startswith(words)) == (0, True)
    file = desk.path.parent / "out"
    told = desk("session", "export", "s-1", "--format", form, "-o", str(file), "--json").json
    assert told == {"id": "s-1", "format": form, "path": str(file), "bytes": file.stat().st_size}
    assert file.read_text("utf-8") == shown.out


@pytest.mark.parametrize("form", [["--json"], ["--format", "json"], ["--format", "markdown"], ["--format", "html"]])
def test_a_dash_is_stdout(desk: Desk, form: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """`-o -` is as if no file were named, in every format: the document comes out, and no file of that name is made."""
    desk.fill()
    monkeypatch.chdir(desk.path.parent)
    shown = desk("session", "export", "s-1", *form)
    assert shown.code == 0
    assert desk("session", "export", "s-1", *form, "-o", "-") == shown
    assert desk("session", "export", "s-1", "--format", "html", "--json", "-o", "-").code == 2
    assert not Path("-").exists()


def test_a_file_that_cannot_be_written_is_told(desk: Desk) -> None:
    """The reason of the system is told, with code 1."""
    desk.fill()
    done = desk("session", "export", "s-1", "-o", str(desk.path.parent))
    assert (done.code, done.out) == (1, "")
    assert done.err == f"gotato: cannot write {desk.path.parent}: Is a directory\n"


# ---- check


def test_a_sound_session_is_code_0(desk: Desk) -> None:
    """Nothing is wrong, and that is told."""
    desk.fill()
    assert desk("session", "check", "s-1") == (0, "s-1: nothing is wrong\n", "")
    told = desk("session", "check", "s-1", "--json").json
    assert told == {"id": "s-1", "ok": True, "problems": [], "recovered": [], "corrupt": None, "repaired": None}
    assert desk("session", "check", "s-1", "--repair").code == 0


def broken_off(desk: Desk) -> None:
    """A session whose writer was killed in the middle of a tool."""
    with desk.session() as session:
        session.append(UserMessage("What is 17 * 23?", id="u1"))
        session.append(AssistantMessage("", [ToolCall("c", "calculate", '{"expression": "17 * 23"}')], id="a1"))
        session.mark_started("a1:0")


def test_what_would_be_mended_is_code_1(desk: Desk) -> None:
    """Open calls that nobody waits for are told, and what they would get; nothing is changed."""
    broken_off(desk)
    for _ in range(2):
        done = desk("session", "check", "s-1")
        assert (done.code, done.err) == (1, "")
        assert done.out == "s-1: message 1: call 0 has no result; it would get cancelled\n"
    told = desk("session", "check", "s-1", "--json")
    assert (told.code, told.json["ok"], told.json["problems"][0]["index"]) == (1, False, 1)


def damage(desk: Desk) -> None:
    """Changes a byte in the middle of what is stored."""
    if desk.path.is_dir():
        file = desk.path / "s-1.jsonl"
        file.write_bytes(file.read_bytes().replace(b"Look at Oslo", b"Look at Rome", 1))
        return
    connection = sqlite3.connect(desk.path)
    connection.execute("UPDATE entries SET text = replace(text, 'Look at Oslo', 'Look at Rome')")
    connection.commit()
    connection.close()


def test_damage_is_told_with_its_line_and_repaired_into_a_copy(desk: Desk) -> None:
    """Where it is damaged is told, and what --repair would do; that opens a copy, and leaves the damaged one alone."""
    desk.fill()
    damage(desk)
    done = desk("session", "check", "s-1")
    assert (done.code, done.err) == (1, "")
    assert "s-1: damaged at line 3: " in done.out
    assert "--repair would open a copy" in done.out
    assert "repair=True" not in done.out
    told = desk("session", "check", "s-1", "--json").json
    assert (told["ok"], told["corrupt"]["line"], told["repaired"]) == (False, 3, None)
    done = desk("session", "check", "s-1", "--repair")
    assert done.code == 1
    assert "now the session s-1.repaired" in done.out
    told = desk("session", "check", "s-1.repaired", "--json").json
    assert (told["corrupt"], told["problems"]) == (None, [])
    assert told["recovered"]
    told = desk("session", "check", "s-1", "--repair", "--json").json
    assert told["repaired"] == "s-1.repaired-2"
    for argv in (["session", "show", "s-1"], ["session", "resume", "s-1"], ["context", "inspect", "s-1"]):
        done = desk(*argv)
        assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
        assert "check --repair opens a copy" in done.err


def test_where_nothing_can_be_read_there_is_no_copy(desk: Desk, tmp_path: Path) -> None:
    """--repair of a session of which nothing is left tells so, in the form that was asked for."""
    desk.path = tmp_path / "folder"
    desk.path.mkdir()
    (desk.path / "s-1.jsonl").write_bytes(b"\0" * 100)
    done = desk("session", "check", "s-1", "--repair")
    assert (done.code, done.err) == (1, "")
    assert done.out.endswith("s-1: nothing of it can be read: there is no copy\n")
    told = desk("session", "check", "s-1", "--repair", "--json").json
    assert (told["ok"], told["corrupt"]["line"], told["repaired"]) == (False, 1, None)


def test_a_session_of_a_newer_release_is_told(desk: Desk, tmp_path: Path) -> None:
    """It is not supported, in one line, and not changed."""
    desk.path = tmp_path / "folder"
    desk.path.mkdir()
    head: dict[str, Any] = {"gotato_session": 99, "id": "s-1", "created_at": 1.0}
    (desk.path / "s-1.jsonl").write_text(json.dumps(head) + "\n", "utf-8")
    for argv in (["session", "check", "s-1"], ["session", "resume", "s-1"], ["context", "compact", "s-1"]):
        done = desk(*argv, *(["--keep-tokens", "1"] if "compact" in argv else []))
        assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
        assert "newer" in done.err


def test_times_are_told_in_utc() -> None:
    """Nobody has to know where the machine is."""
    assert utc(0.0) == "1970-01-01 00:00:00Z"
    assert utc(1e15) == "1000000000000000.0 (Unix seconds)"


def test_as_a_user_types_it(gotato: Gotato, tmp_path: Path) -> None:
    """A run into a new store, a list and a check, each a process of its own."""
    for place in ("folder", "sessions.db"):
        env = {"GOTATO_STORE": str(tmp_path / place)}
        done = gotato("run", "--session", "mine", "What is 17 * 23?", env=env)
        assert (done.returncode, done.stdout) == (0, "17 * 23 = 391.\n")
        assert json.loads(gotato("session", "list", "--json", env=env).stdout)["id"] == "mine"
        done = gotato("session", "check", "mine", env=env)
        assert (done.returncode, done.stdout, done.stderr) == (0, "mine: nothing is wrong\n", "")


def test_a_killed_run_is_gone_on_with(desk: Desk) -> None:
    """What was started and gave no answer is told to the model, and not run again."""
    broken_off(desk)
    done = desk("session", "resume", "s-1")
    assert done.code == 0
    with desk.session() as session:
        results = [each.result.status for each in session.history if isinstance(each, ToolMessage)]
        assert results == ["cancelled"]
