"""What every Model promises (`gotato_py.Model`)."""

from __future__ import annotations

from ._model_ends import EndsContract
from ._model_streams import StreamsContract


class ModelContract(StreamsContract, EndsContract):
    """The promises of a model: `class TestMine(ModelContract)` with a `make()` that returns one.

    The suite asks it about twenty times, more where it finds something, so give it a server of the test's own, a
    recording or a script. Override `request` where that needs a certain one: its answer has to have at least three
    events. Where they can be said, override `stalled`, `failures`, `sent` and `unclosed` as well: what they tell cannot
    be seen from outside.
    """
