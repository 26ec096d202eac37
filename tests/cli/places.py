"""The command in this process, and places where it finds sessions: one of each kind."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gotato_cli._interrupts import Interrupts
from gotato_cli._main import run
from gotato_cli._stores import VARIABLE, store_at
from gotato_session import Session, StoreBase

from ..session.lives import live

PLACES: Mapping[str, str] = {"file": "sessions", "sqlite": "sessions.db"}


class Done(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object on stdout."""
        assert self.out.count("\n") == 1, self
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """The JSON objects on stdout, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]


class Desk:
    """A store at a path, and the command that is given it with `--store`."""

    def __init__(self, path: Path, capture: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        self.interrupts = Interrupts(leave=lambda code: None)
        self._capture = capture
        monkeypatch.delenv(VARIABLE, raising=False)

    def __call__(self, *argv: str, place: bool = True) -> Done:
        """Carries the command out; `place` names the store."""
        self._capture.readouterr()
        code = run([*argv, *(["--store", str(self.path)] if place else [])], self.interrupts)
        out, err = self._capture.readouterr()
        assert "Traceback" not in err
        return Done(code, out, err)

    @contextmanager
    def store(self) -> Generator[StoreBase, None, None]:
        """The store itself."""
        with store_at(str(self.path), create=True) as store:
            yield store

    @contextmanager
    def session(self, id: str = "s-1") -> Generator[Session, None, None]:
        """A session, open for writing; made if there is none."""
        with self.store() as store, store.open(id, create=True) as session:
            yield session

    def fill(self, id: str = "s-1", **metadata: object) -> None:
        """Makes a session in which everything has happened."""
        with self.store() as store, store.create(id, metadata=metadata) as session:
            live(session)


def desk(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Desk:
    """A store of each kind, with nothing in it."""
    return Desk(tmp_path / PLACES[request.param], capsys, monkeypatch)


each_store: Callable[[Any], Any] = pytest.fixture(name="desk", params=list(PLACES))
"""Makes a fixture `desk` of the function above."""
