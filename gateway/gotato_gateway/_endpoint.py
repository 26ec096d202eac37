"""Base URLs and timeouts: checked when an adapter is made, so that a request can only fail for the server's reasons."""

from __future__ import annotations

import math
from urllib.parse import urlsplit, urlunsplit

from gotato_py import InvalidArgument


def checked_base_url(owner: str, url: object) -> str:
    """A base URL that a request can be sent to. An error does not show it: it may hold a password."""
    if isinstance(url, str):
        try:
            parts = urlsplit(url.strip())
            usable = (
                parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
            )
        except ValueError:
            usable = False
        if usable and url.strip().isprintable() and " " not in url.strip():
            return url.strip()
    raise InvalidArgument(f"{owner}: base_url must be an http or https URL, such as https://api.openai.com/v1")


def endpoint(base_url: str, path: str, query: str = "") -> str:
    """The URL of one operation, without user and password; a query (Azure's api-version) stays, behind `query`."""
    parts = urlsplit(base_url)
    return urlunsplit(
        parts._replace(
            netloc=parts.netloc.rpartition("@")[2],
            path=f"{parts.path.rstrip('/')}/{path}",
            query="&".join(filter(None, (query, parts.query))),
            fragment="",
        )
    )


def shown_url(base_url: str) -> str:
    """The URL without what may be secret in it: user, password, query."""
    parts = urlsplit(base_url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def checked_seconds(where: str, seconds: object) -> float:
    """A time to wait: a number of seconds above 0."""
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, int | float)
        or not 0 < seconds <= 1e6
        or math.isnan(seconds)
    ):
        raise InvalidArgument(f"{where} must be a number of seconds above 0, at most a million")
    return float(seconds)
