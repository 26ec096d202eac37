"""What the kernel costs, beside a bare hand-written loop measured in the same run.

    python benchmarks/bench_core.py [--json] [--quick] [ROW ...]

Prints one line a row: the figures of both (medians), their ratio (the median of ratios of pairs) with the least and
the most of the number that is judged, what it must be and aims at, and the verdict. CPU time where the row is work of
the kernel alone, wall time elsewhere.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "gotato_py"), str(ROOT / "gateway")]  # a bare clone is enough

from benchmarks import cancels, processes, turns  # noqa: E402  # found by the lines above
from benchmarks.measure import Effort, Measured, Row, Spread  # noqa: E402  # as above

# Without `requests` there is no gateway to measure.
HTTP_ROWS: tuple[Row, ...] = import_module("benchmarks.cancels_http").ROWS if find_spec("requests") else ()
ROWS: tuple[Row, ...] = (*turns.ROWS, *processes.ROWS, *cancels.ROWS, *HTTP_ROWS)
_HEADS = ("row", "what", "floor", "gotato-py", "ratio", "min-max", "must", "aim", "verdict")


def machine() -> dict[str, Any]:
    """What kind of machine this is: nothing that names it."""
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
    }


def as_dict(row: Row, measured: Measured) -> dict[str, Any]:
    """One row for `--json`."""

    def told(found: Spread | None) -> dict[str, float] | None:
        return None if found is None else {"median": found.middle, "min": found.low, "max": found.high}

    goal = row.goal
    return {
        "row": row.name,
        "title": row.title,
        "unit": row.unit,
        "floor": told(measured.floor),
        "ours": told(measured.ours),
        "ratio": told(measured.ratio),
        "judged": None if goal is None else goal.of,
        "must": None if goal is None else goal.must,
        "aim": None if goal is None else goal.aim,
        "verdict": row.verdict(measured),
    }


def number(value: float) -> str:
    """A figure with as many digits as mean something."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def cells(row: Row, measured: Measured) -> tuple[str, ...]:
    """One row for people."""
    floor = "" if measured.floor is None else f"{number(measured.floor.middle)} {row.unit}"
    ratio = "" if measured.ratio is None else f"{number(measured.ratio.middle)} x"
    judged, goal = row.judged(measured) or measured.ours, row.goal
    unit = " x" if goal is not None and goal.of == "ratio" else f" {row.unit}"
    sign = ">= " if goal is not None and goal.least else "<= "
    must, aim = ("", "") if goal is None else (f"{sign}{goal.must:g}{unit}", f"{sign}{goal.aim:g}{unit}")
    between = f"{number(judged.low)}-{number(judged.high)}{unit}"
    ours = f"{number(measured.ours.middle)} {row.unit}"
    return row.name, row.title, floor, ours, ratio, between, must, aim, row.verdict(measured)


def chosen(names: Sequence[str]) -> list[Row]:
    """The rows of these names, or all; exits with a list of the names for one that is none."""
    known = {row.name: row for row in ROWS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"no row {unknown[0]!r}; rows: {', '.join(known)}")
    return [known[name] for name in names] or list(ROWS)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures the rows and prints them."""
    parser = argparse.ArgumentParser(description="What the kernel costs, beside a bare loop.")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--quick", action="store_true", help="a try of the command: the figures mean little")
    parser.add_argument("rows", nargs="*", metavar="ROW", help="only these rows")
    given = parser.parse_args(arguments)
    effort = Effort(given.quick)
    rows = chosen(given.rows)
    if given.json:
        print(json.dumps({"machine": machine(), "rows": [as_dict(row, row.measure(effort)) for row in rows]}, indent=1))
        return
    print("| " + " | ".join(_HEADS) + " |")
    print("|" + "---|" * len(_HEADS))
    for row in rows:
        print("| " + " | ".join(cells(row, row.measure(effort))) + " |", flush=True)
    kind = machine()
    print(f"\n{kind['implementation']} {kind['python']}, {kind['cores']} cores, {kind['system']}.")


if __name__ == "__main__":
    main()
