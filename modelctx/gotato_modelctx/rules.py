"""Rules: what AGENTS.md and files like it say, from a folder up to a root, within a number of bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gotato_py import InvalidArgument, NotFound

from ._arguments import check_path, is_sequence
from ._reading import left_out, read_bounded, real_path, shown_text
from .sections import Section, check_tag
from .sources import check_bytes


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules files of a folder and of those above it, up to `root`: one section each, the nearest last.

    Without a `root`, those of the folder alone. In each folder the `names` are looked for in their order, and read anew
    for each request. `max_bytes` is for all of them together: the nearest files are shown first, what no longer fits is
    cut or left out, and its section says so. Nothing outside of `root` is read: a link that leads out of it is passed
    over, and so is what is no regular file. A file that two names lead to is shown once. What is no UTF-8 becomes
    U+FFFD.

    Raises `InvalidArgument` for a `folder` that is a file or not within `root`, for a name with a "/", and for what is
    no path; when it is asked, `NotFound` for a file that cannot be read.
    """

    folder: str | Path
    root: str | Path | None = field(default=None, kw_only=True)
    names: Sequence[str] = field(default=("AGENTS.md",), kw_only=True)
    max_bytes: int = field(default=32_768, kw_only=True)
    tag: str = field(default="rules", kw_only=True)

    def __post_init__(self) -> None:
        check_tag("Rules.tag", self.tag)
        check_bytes("Rules.max_bytes", self.max_bytes)
        check_path("Rules.folder", self.folder)
        if self.root is not None:
            check_path("Rules.root", self.root)
        if not is_sequence(self.names):
            raise InvalidArgument('Rules.names must be a sequence of file names, such as ("AGENTS.md",)')
        for index, name in enumerate(self.names):
            if not isinstance(name, str) or name in ("", ".", "..") or "\0" in name or Path(name).name != name:
                raise InvalidArgument(f"Rules.names[{index}] must be the name of a file, without a folder")
        if real_path(self.folder).is_file():
            raise InvalidArgument("Rules.folder must be a folder, not a file; names= says which files are read there")
        if not real_path(self.folder).is_relative_to(self._root()):
            raise InvalidArgument("Rules.folder must be root, or a folder within it")

    def __call__(self) -> tuple[Section, ...]:
        root = self._root()
        left = self.max_bytes
        found: list[Section] = []
        for shown, path in self._files(root):
            try:
                data, size = read_bounded(path, left)
            except OSError as error:
                text = f"Rules: {shown} cannot be read: {type(error).__name__}"
                raise NotFound(text, operation="Rules", cause=error) from error
            text = shown_text(data, left, size) if left or not size else left_out(size, size)
            left -= min(left, size)
            found.append(Section(self.tag, text, {"path": shown}))
        return tuple(reversed(found))

    def _root(self) -> Path:
        return real_path(self.folder if self.root is None else self.root)

    def _files(self, root: Path) -> Iterator[tuple[str, Path]]:
        """The files to show, the nearest first: what each is called, seen from root, and where it really is."""
        seen: set[Path] = set()
        folder = real_path(self.folder)
        for place in [each for each in (folder, *folder.parents) if each.is_relative_to(root)]:
            for name in reversed(self.names):
                real = real_path(place / name)
                if real not in seen and real.is_relative_to(root) and real.is_file():
                    seen.add(real)
                    yield (place / name).relative_to(root).as_posix(), real
