"""Whatever is appended, cut off or written behind the store's back: what was committed is there, or damage is told."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from gotato_py import NotSupported, SessionCorrupt

from .journals import HEAD, ID, Quick, numbers, numbers_in, opened, store_on

OWN = {"seq", "v", "type", "time", "more", "n", "meta", "crc"}
# Any: JSON values
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
types = st.sampled_from(["message", "metadata", "event", "label"])
names = st.text(min_size=1, max_size=5).filter(lambda name: name not in OWN)
members: st.SearchStrategy[dict[str, Any]] = st.dictionaries(names, json_values, max_size=2)
commits = st.lists(st.lists(st.tuples(types, members), min_size=1, max_size=3), max_size=4)


def numbered(given: list[list[tuple[str, dict[str, Any]]]]) -> list[list[dict[str, Any]]]:
    """The commits with their numbers."""
    seq = 0
    made: list[list[dict[str, Any]]] = []
    for commit in given:
        made.append([])
        for type, members in commit:
            seq += 1
            made[-1].append({"seq": seq, "v": 1, "type": type, "time": 1.0, **members})
    return made


@given(commits)
def test_any_entries_come_back(given: list[list[tuple[str, dict[str, Any]]]]) -> None:
    """Whatever plain JSON is appended is read again as it was, and the list counts its messages."""
    with tempfile.TemporaryDirectory() as folder:
        store = store_on(Quick(), Path(folder))
        store.create_journal(ID, HEAD)
        journal = opened(store)
        made = numbered(given)
        for commit in made:
            journal.append(commit)
        journal.close()
        entries = [entry for commit in made for entry in commit]
        assert opened(store, read_only=True).entries() == [HEAD, *entries]
        [summary] = store.summaries()
        assert summary.messages == sum(entry["type"] == "message" for entry in entries)
        assert list(store.salvage_journal(ID)) == [HEAD, *entries]


@given(commits, st.binary(max_size=60), st.floats(0, 1), st.integers(0, 60))
@example([], b',"crc":"00000000"}', 0.0, 0)  # which is the sum of nothing
def test_any_cut_and_any_tail(
    given: list[list[tuple[str, dict[str, Any]]]], tail: bytes, cut: float, nuls: int
) -> None:
    """After any cut and with any bytes behind it, whole commits from the first on are there, and more can be made."""
    with tempfile.TemporaryDirectory() as folder:
        store = store_on(Quick(), Path(folder))
        store.create_journal(ID, HEAD)
        path = Path(folder, f"{ID}.jsonl")
        journal = opened(store)
        ends = {path.stat().st_size: 0}
        for commit in numbered(given):
            journal.append(commit)
            ends[path.stat().st_size] = commit[-1]["seq"]
        journal.close()
        first, data = min(ends), path.read_bytes()
        at = first + round((len(data) - first) * cut)
        path.write_bytes(data[:at] + b"\0" * nuls + tail)
        whole = max((end for end in ends if end <= at), default=first)
        expected = list(range(1, ends[whole] + 1))
        journal = opened(store)
        found = numbers(journal)
        assert found == expected or (at + 1 in ends and found == list(range(1, ends[at + 1] + 1)))
        journal.append([{"seq": len(found) + 1, "type": "label"}])
        journal.close()
        assert numbers_in(store) == [*found, len(found) + 1]


@given(commits.filter(bool), st.floats(0, 1), st.binary(min_size=1, max_size=9), st.integers(0, 9))
def test_any_damage_in_the_middle(
    given: list[list[tuple[str, dict[str, Any]]]], where: float, put: bytes, instead: int
) -> None:
    """Wherever bytes are replaced, what is opened is a prefix of what was committed, or the damage is told; a reader
    and a writer agree, and what can be read of it are entries that were there."""
    with tempfile.TemporaryDirectory() as folder:
        store = store_on(Quick(), Path(folder))
        store.create_journal(ID, HEAD)
        path = Path(folder, f"{ID}.jsonl")
        journal = opened(store)
        made = numbered(given)
        for commit in made:
            journal.append(commit)
        journal.close()
        data = path.read_bytes()
        at = round(len(data) * where)
        damaged = data[:at] + put + data[at + instead :]
        path.write_bytes(damaged)
        entries = [HEAD, *(entry for commit in made for entry in commit)]
        prefixes = [entries[: 1 + sum(map(len, made[:count]))] for count in range(len(made) + 1)]
        try:
            found = opened(store, read_only=True).entries()
        except (SessionCorrupt, NotSupported):
            found = []
        assert found in [[], *prefixes]
        try:
            salvaged = list(store.salvage_journal(ID))
            assert all(each in entries for each in salvaged[1:] if each.get("type") != "gap")
        except (SessionCorrupt, NotSupported):
            assert not found
        try:
            journal = opened(store)
            assert journal.entries() == found
            journal.close()
        except (SessionCorrupt, NotSupported):
            assert not found
            assert path.read_bytes() == damaged
