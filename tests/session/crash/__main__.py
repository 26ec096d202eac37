"""`python -m tests.session.crash`: the crash campaign, as a process with one thread, which forks what it kills."""

from __future__ import annotations

import argparse
import gc
import shutil
import sys
import tempfile
import time
from pathlib import Path

from .campaign import campaign
from .places import PLACES


def main() -> None:
    """Prints how many kills there were, a line a store."""
    asked = argparse.ArgumentParser(prog="python -m tests.session.crash", description=__doc__)
    asked.add_argument("--kills", type=int, default=200, help="of each store")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--store", choices=sorted(PLACES), action="append")
    asked.add_argument("--folder", type=Path, help="where the stores are; kept after a failure")
    given = asked.parse_args()
    gc.freeze()  # nothing of it is looked through again in each child
    folder = given.folder or Path(tempfile.mkdtemp(prefix="gotato-crash-"))
    for name in given.store or sorted(PLACES):
        begin = time.monotonic()
        counts = campaign(name, folder, given.kills, given.seed)
        took = time.monotonic() - begin
        said = ", ".join(f"{what} {count}" for what, count in sorted(counts.items()))
        sys.stdout.write(f"{name}: {given.kills} processes in {took:.1f} s: {said}\n")
        sys.stdout.flush()
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
