"""What it costs to read a provider's stream, beside splitting its lines and parsing its JSON.

    python benchmarks/bench_gateway.py [--json] [--quick] [ROW ...]

Prints one line a row, as `bench_core.py` does. The rows `read_…` are megabytes a second from bytes into events, of
recorded streams; the others are the time for twice as much as a multiple of the time for half of it, so that 2 is
proportional and 4 would be quadratic. All of it is CPU time.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "gotato_py"), str(ROOT / "gateway")]  # a bare clone is enough

from benchmarks import streams, table  # noqa: E402  # found by the line above

if __name__ == "__main__":
    table.main(streams.ROWS, "What it costs to read a provider's stream, beside parsing its JSON.")
