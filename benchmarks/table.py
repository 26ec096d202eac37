"""What every benchmark prints: a table for people, or one JSON object for programs."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Sequence
from typing import Any

from benchmarks.measure import Effort, Measured, Row, Spread

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
    must, aim = ("", "") if goal is None else (f"{sign}{goal.must:.3g}{unit}", f"{sign}{goal.aim:.3g}{unit}")
    between = f"{number(judged.low)}-{number(judged.high)}{unit}"
    ours = f"{number(measured.ours.middle)} {row.unit}"
    return row.name, row.title, floor, ours, ratio, between, must, aim, row.verdict(measured)


def chosen(rows: Sequence[Row], names: Sequence[str]) -> list[Row]:
    """The rows of these names, or all; exits with a list of the names for one that is none."""
    known = {row.name: row for row in rows}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"no row {unknown[0]!r}; rows: {', '.join(known)}")
    return [known[name] for name in names] or list(rows)


def main(rows: Sequence[Row], description: str, arguments: Sequence[str] | None = None) -> None:
    """Measures the rows that the command line names, or all, and prints them."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--quick", action="store_true", help="a try of the command: the figures mean little")
    parser.add_argument("rows", nargs="*", metavar="ROW", help="only these rows")
    given = parser.parse_args(arguments)
    effort = Effort(given.quick)
    wanted = chosen(rows, given.rows)
    if given.json:
        told = [as_dict(row, row.measure(effort)) for row in wanted]
        print(json.dumps({"machine": machine(), "rows": told}, indent=1))
        return
    print("| " + " | ".join(_HEADS) + " |")
    print("|" + "---|" * len(_HEADS))
    for row in wanted:
        print("| " + " | ".join(cells(row, row.measure(effort))) + " |", flush=True)
    kind = machine()
    print(f"\n{kind['implementation']} {kind['python']}, {kind['cores']} cores, {kind['system']}.")
