"""API keys and what travels with a request: found, checked and kept out of sight."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

from gotato_py import InvalidArgument

from ._providers import Provider, is_known, provider_at

SECRET_NAME = re.compile(
    r"auth|key|token|secret|cookie|password|signature|credential|pass(?:phrase|code|wd)?$|^(?:sig|code)$", re.IGNORECASE
)
"""Headers and members of a query whose value is not shown."""

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def resolve_key(owner: str, given: str | None, base_url: str | None, home: Provider) -> str:
    """The key to send, "" for none.

    Left out, it comes from the variable of the service at `base_url`; for a host that is not known here, a proxy say,
    and without `base_url`, from that of the dialect's `home`, as in the official SDK. None is an error without
    `base_url`; with one it means that no credential is sent.
    """
    if given is not None:
        key = checked_key(f"{owner}: api_key", given)
        if not key and base_url is None:
            raise InvalidArgument(f"{owner}: api_key is empty; pass a key, or base_url for a server that takes none")
        return key
    provider = home if base_url is None or not is_known(base_url) else provider_at(base_url)
    key = "" if provider is None else key_from_environment(owner, provider)
    if not key and base_url is None:
        raise InvalidArgument(f"{owner}: no api_key; pass one, set {home.key_variable}, or pass base_url")
    return key


def key_from_environment(owner: str, provider: Provider) -> str:
    """The key of a service from its usual variable, else from another that its SDK reads; "" if there is none."""
    for variable in (provider.key_variable, *provider.other_variables):
        key = checked_key(f"{owner}: the variable {variable}", os.environ.get(variable, "")) if variable else ""
        if key:
            return key
    return ""


def checked_key(where: str, key: object) -> str:
    """The key without the white space around it. Any other stray character is refused, and never shown."""
    if not isinstance(key, str):
        raise InvalidArgument(f"{where} must be a str or None, not {type(key).__name__}")
    key = key.strip()
    for index, character in enumerate(key):
        if not "!" <= character <= "~":
            kind = "white space" if character.isspace() else "a control character" if character < " " else "not ASCII"
            raise InvalidArgument(
                f"{where} has a character that no key has, {kind}, at place {index + 1}; copy it again"
            )
    return key


def checked_headers(owner: str, headers: Mapping[str, str] | None) -> dict[str, str]:
    """The caller's own headers; what could not be sent is refused here, by its name, since its value may be secret."""
    if headers is not None and not isinstance(headers, Mapping):
        raise InvalidArgument(f"{owner}: headers must be a mapping or None, not {type(headers).__name__}")
    checked: dict[str, str] = {}
    for name, value in (headers or {}).items():
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            raise InvalidArgument(f"{owner}: headers holds a name that HTTP does not allow")
        if not isinstance(value, str):
            raise InvalidArgument(f"{owner}: header {name} must be a str, not {type(value).__name__}")
        value = value.strip()
        if not all(c == "\t" or (c.isprintable() and c <= "\xff") for c in value):
            raise InvalidArgument(f"{owner}: the value of header {name} has a character that HTTP does not allow")
        checked[name] = value
    return checked


def joined(headers: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
    """Both; a header that both have holds both values, as a list (RFC 9110, 5.3)."""
    given = {name.lower(): value for name, value in headers.items()}
    own = {name: value for name, value in headers.items() if name.lower() not in {each.lower() for each in extra}}
    return own | {name: ", ".join(filter(None, (given.get(name.lower()), value))) for name, value in extra.items()}


def authorization(key: str, headers: Mapping[str, str], url: str, carrier: str, prefix: str) -> dict[str, str]:
    """The header that carries the credential: the caller's own goes first, then the key, then what the URL holds."""
    if any(name.lower() in ("authorization", carrier.lower()) for name in headers):
        return {}
    if key:
        return {carrier: f"{prefix}{key}"}
    return {} if urlsplit(url).username is None else {"Authorization": f"Basic {_basic_credential(url)}"}


def _basic_credential(url: str) -> str:
    """Name and password of a URL as RFC 7617 sends them."""
    parts = urlsplit(url)
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}".encode()
    return base64.b64encode(pair).decode("ascii")


def secrets_in(key: str, headers: Mapping[str, str], url: str) -> tuple[str, ...]:
    """Everything in a request that must never be shown: longest first, so that a part does not hide the whole."""

    def found() -> Iterator[str]:
        yield key
        for name, value in headers.items():
            if SECRET_NAME.search(name):
                yield value
                yield from value.split()[1:]
        parts = urlsplit(url)
        if parts.username is not None:
            yield _basic_credential(url)
            for half in (parts.password or "", "" if parts.password else parts.username):  # a key may stand for a name
                yield half
                yield unquote(half)
        for name, value in parse_qsl(parts.query):
            if SECRET_NAME.search(name):
                yield value

    return tuple(sorted({secret for secret in found() if len(secret) >= 4}, key=len, reverse=True))
