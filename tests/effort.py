"""How far the long searches of the tests go, by the Hypothesis profile; here, so that their time is weighed once.

`dev` is for every day, and for the suite under coverage: every line is reached, the ends are looked at, what lies
between them in samples. `ci` is for the Python beside it, without coverage: nothing is left out that takes seconds.
`nightly` leaves nothing out.
"""

from __future__ import annotations

import os
from typing import TypeVar

from hypothesis import settings

T = TypeVar("T")
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "dev")


def by_profile(*, dev: T, ci: T, nightly: T) -> T:
    """The value for this run's profile."""
    return {"dev": dev, "ci": ci}.get(PROFILE, nightly)


def costly(part: int) -> settings:
    """For a property whose examples take long: this part of the profile's number of them, ten at least."""
    return settings(max_examples=max(10, settings().max_examples // part))
