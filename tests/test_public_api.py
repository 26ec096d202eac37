"""What is public is listed, and the listing is true."""

from __future__ import annotations

from .public_api import LISTING, listing


def test_the_public_api_is_as_listed() -> None:
    """Whoever changes what users can name says so: `make api` writes the listing, and the diff shows it."""
    assert listing() == LISTING.read_text(encoding="utf-8")
