"""What the kernel costs, beside a bare hand-written loop measured in the same run.

    python benchmarks/bench_core.py [--json] [--quick] [ROW ...]

Prints one line a row: the figures of both (medians), their ratio (the median of ratios of pairs) with the least and
the most of the number that is judged, what it must be and aims at, and the verdict. CPU time where the row is work of
the kernel alone, wall time elsewhere.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "gotato_py"), str(ROOT / "gateway")]  # a bare clone is enough

from benchmarks import cancels, processes, table, turns  # noqa: E402  # found by the lines above
from benchmarks.measure import Row  # noqa: E402  # as above

# Without `requests` there is no gateway to measure.
HTTP_ROWS: tuple[Row, ...] = import_module("benchmarks.cancels_http").ROWS if find_spec("requests") else ()
ROWS: tuple[Row, ...] = (*turns.ROWS, *processes.ROWS, *cancels.ROWS, *HTTP_ROWS)

if __name__ == "__main__":
    table.main(ROWS, "What the kernel costs, beside a bare loop.")
