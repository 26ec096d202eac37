"""What every Store promises (`gotato_session.Store`)."""

from __future__ import annotations

from ._store_basics import SessionsContract
from ._store_forks import ForksContract
from ._store_journals import JournalsContract
from ._store_keeping import KeepingContract
from ._store_resuming import ResumingContract
from ._store_writers import WritersContract


class StoreContract(
    SessionsContract, KeepingContract, WritersContract, ResumingContract, ForksContract, JournalsContract
):
    """The promises of a store: `class TestMine(StoreContract)` with a `make()` that returns one.

    Each `make()` opens the same place, as another process would; a store in memory returns itself. The suite calls the
    store's `close`, if it has one, when a test ends (override `close` where letting go takes more than that). The place
    may hold other sessions already. What `StoreBase` asks of its journals is tested where the store derives from it.
    """
