"""Rules: AGENTS.md and the like, from a folder up to a root, within a number of bytes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gotato_modelctx import Rules, Section
from gotato_py import InvalidArgument, NotFound


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A root with rules at the top, in a folder, and outside of the root."""
    root = tmp_path / "root"
    (root / "app" / "web").mkdir(parents=True)
    (tmp_path / "AGENTS.md").write_text("outside", "utf-8")
    (root / "AGENTS.md").write_text("top", "utf-8")
    (root / "app" / "web" / "AGENTS.md").write_text("web", "utf-8")
    return root


def test_the_nearest_comes_last_and_nothing_outside_is_read(tree: Path) -> None:
    """From the root down to the folder, each file with its path seen from the root."""
    found = Rules(tree / "app" / "web", root=tree)()
    assert found == (
        Section("rules", "top", {"path": "AGENTS.md"}),
        Section("rules", "web", {"path": "app/web/AGENTS.md"}),
    )
    assert Rules(tree, root=tree)() == found[:1]
    assert Rules(str(tree / "app"), root=str(tree), names=("OTHER.md",))() == ()


def test_other_names_are_looked_for_in_their_order(tree: Path) -> None:
    """In each folder the names come in the order given; a file that two names lead to is shown once."""
    (tree / "STYLE.md").write_text("style", "utf-8")
    (tree / "ALIAS.md").symlink_to("AGENTS.md")
    found = Rules(tree, root=tree, names=["AGENTS.md", "STYLE.md"], tag="guide")()
    assert [(each.tag, each.text) for each in found] == [("guide", "top"), ("guide", "style")]
    assert len(Rules(tree, root=tree, names=["ALIAS.md", "AGENTS.md"])()) == 1


def test_changes_are_seen_each_time(tree: Path) -> None:
    """The files are read anew each time they are asked for."""
    rules = Rules(tree, root=tree)
    (tree / "AGENTS.md").write_text("changed", "utf-8")
    assert [each.text for each in rules()] == ["changed"]
    (tree / "AGENTS.md").unlink()
    assert rules() == ()


def test_the_budget_is_for_the_nearest_first(tree: Path) -> None:
    """What no longer fits is cut, or left out, and its section says how much."""
    rules = Rules(tree / "app" / "web", root=tree, max_bytes=5)
    (tree / "AGENTS.md").write_text("ø" * 10, "utf-8")
    top, web = rules()
    assert web.text == "web"
    assert top.text == "ø\n[cut: 18 of 20 bytes are left out here]"
    (tree / "app" / "web" / "AGENTS.md").write_text("12345678", "utf-8")
    top, web = rules()
    assert web.text == "12345\n[cut: 3 of 8 bytes are left out here]"
    assert top.text == "[cut: 20 of 20 bytes are left out here]"
    (tree / "AGENTS.md").write_text("", "utf-8")
    assert rules()[0].text == ""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(st.lists(st.text(st.sampled_from("aø🙂"), max_size=8), min_size=3, max_size=3), st.integers(1, 40))
def test_the_budget_holds(tree: Path, texts: list[str], budget: int) -> None:
    """However long the files are, no more of them is shown than the budget."""
    for place, text in zip((tree, tree / "app", tree / "app" / "web"), texts, strict=True):
        (place / "AGENTS.md").write_text(text, "utf-8")
    found = Rules(tree / "app" / "web", root=tree, max_bytes=budget)()
    shown = ["\n".join(line for line in each.text.split("\n") if not line.startswith("[cut")) for each in found]
    assert sum(len(text.encode()) for text in shown) <= budget
    assert all(whole.startswith(text) for whole, text in zip(texts, shown, strict=True))


def test_links_out_of_the_root_are_not_followed(tree: Path) -> None:
    """A link to a file or to a folder outside is passed over; one within the root is followed."""
    (tree / "app" / "AGENTS.md").symlink_to(tree.parent / "AGENTS.md")
    (tree / "out").symlink_to(tree.parent)
    assert [each.text for each in Rules(tree / "app", root=tree)()] == ["top"]
    with pytest.raises(InvalidArgument, match="folder"):
        Rules(tree / "out", root=tree)
    (tree / "app" / "AGENTS.md").unlink()
    (tree / "app" / "AGENTS.md").symlink_to("web/AGENTS.md")
    assert [each.text for each in Rules(tree / "app", root=tree)()] == ["top", "web"]


def test_a_folder_that_was_moved_out_gives_nothing(tree: Path) -> None:
    """A folder that became a link out of the root since the rules were made is not read."""
    rules = Rules(tree / "later", root=tree)
    (tree / "later").symlink_to(tree.parent)
    assert rules() == ()


def test_odd_files_are_passed_over(tree: Path) -> None:
    """Folders, pipes and circles of links are no rules."""
    (tree / "A.md").mkdir()
    os.mkfifo(tree / "B.md")
    (tree / "C.md").symlink_to("C.md")
    (tree / "D.md").write_bytes(b"\xef\xbb\xbfa\xff")
    found = Rules(tree, root=tree, names=("A.md", "B.md", "C.md", "D.md"))()
    assert [each.text for each in found] == ["a\ufffd"]


@pytest.mark.skipif(not Path("/proc/self/mem").is_file(), reason="needs a file that gives an I/O error to everybody")
def test_a_file_that_cannot_be_read_is_an_error() -> None:
    """Rules that are there and cannot be read are not silently none."""
    with pytest.raises(NotFound, match="mem cannot be read: OSError"):
        Rules("/proc/self", root="/proc/self", names=("mem",))()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc/passwd", "../AGENTS.md", 7])
def test_names_are_names_of_files(tree: Path, name: str) -> None:
    """A name with a folder in it could lead out of the root."""
    with pytest.raises(InvalidArgument, match=r"names\[0\]"):
        Rules(tree, root=tree, names=[name])


def test_wrong_arguments_are_refused(tree: Path) -> None:
    """A text in place of names, no budget, a wrong tag, a folder outside."""
    with pytest.raises(InvalidArgument, match="names"):
        Rules(tree, root=tree, names="AGENTS.md")
    with pytest.raises(InvalidArgument, match="max_bytes"):
        Rules(tree, root=tree, max_bytes=0)
    with pytest.raises(InvalidArgument, match="tag"):
        Rules(tree, root=tree, tag="a b")
    with pytest.raises(InvalidArgument, match="folder"):
        Rules(tree.parent, root=tree)
