"""What sessions cost, beside bare writes and inserts measured in the same run.

    python benchmarks/bench_session.py [--json] [--quick] [ROW ...]

Prints one line a row, as `bench_core.py` does. Durable commits and lists are wall time, all else is CPU time.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "gotato_py"), str(ROOT / "session")]  # a bare clone is enough

from benchmarks import sessions, table  # noqa: E402  # found by the lines above

if __name__ == "__main__":
    table.main(sessions.ROWS, "What sessions cost, beside bare writes and inserts.")
