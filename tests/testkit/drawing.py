"""How much is drawn. Where a test asks for certain values they are the same in every run."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings

QUICK = settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
"""For properties, whose values are drawn."""

SIMPLEST = settings(max_examples=300, phases=[Phase.generate, Phase.shrink], database=None, derandomize=True)
"""For the simplest value of a kind."""

REACH = settings(SIMPLEST, max_examples=3000, phases=[Phase.generate])
"""For values that have to be among those that are drawn."""
