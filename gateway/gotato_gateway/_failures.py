"""What `requests` and `urllib3` raise, as errors of our own: the one place where that is translated.

Which class comes when was measured, and is no guide by itself (a silent server is a ConnectionError in the middle of a
body, a wrong certificate is one too), so the whole chain of exceptions decides. Messages are our own words, since those
of `requests` hold the URL; the cause is the exception of the operating system or of TLS, which knows neither URL nor
headers.
"""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Iterator
from typing import NamedTuple

import requests.exceptions as rx
import urllib3.exceptions as ux

from gotato_py import ConnectionFailed, GotatoError, InvalidRequest, ModelProtocolError

_NETWORK = (rx.RequestException, ux.HTTPError, http.client.HTTPException, OSError)
_UNUSABLE = (
    *(rx.InvalidURL, rx.InvalidSchema, rx.MissingSchema, rx.InvalidHeader),
    ux.LocationValueError,
)
_TLS_CUT = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)


class Place(NamedTuple):
    """Where a request went and how long it may take, for the texts of its errors."""

    host: str
    provider: str
    connect_timeout: float
    idle_timeout: float


def explain_failure(raised: BaseException, answering: bool, place: Place) -> BaseException:
    """The error to raise for an exception; `answering` says that the headers had come.

    An exception that has nothing to do with the network (a bug in the user's session, Ctrl-C) comes back as it is.
    """
    if isinstance(raised, GotatoError) or not isinstance(raised, _NETWORK):
        return raised
    chain = list(_chain(raised))
    cause = _root(chain)
    certificate = next((e for e in chain if isinstance(e, ssl.SSLCertVerificationError)), None)
    if certificate is not None:
        said = certificate.verify_message or "verification failed"
        text = f"the certificate of {place.host} is not trusted ({said}): check base_url, or set REQUESTS_CA_BUNDLE"
        return ConnectionFailed(text, retryable=False, provider=place.provider, cause=cause)
    if _has(chain, ux.DecodeError):
        text = f"the answer of {place.host} could not be decompressed"
        return ModelProtocolError(text, provider=place.provider, cause=cause)
    if type(raised) is OSError and not answering:  # of requests itself, about a file that is not there
        text = "the certificates to trust, or those to show, are not there: check REQUESTS_CA_BUNDLE and the session"
        return InvalidRequest(text, provider=place.provider, cause=cause)
    if _has(chain, rx.InvalidProxyURL, ux.ProxySchemeUnknown):
        text = f"the URL of the proxy on the way to {place.host} has no host, or a scheme that no proxy here has"
        text += ": check the session's proxies and the variables http_proxy, https_proxy and all_proxy"
        return ConnectionFailed(text, retryable=False, provider=place.provider, cause=cause)
    if _has(chain, rx.InvalidSchema):  # that of base_url was looked at when the adapter was made
        text = f"the proxy on the way to {place.host} speaks SOCKS, which needs a package: pip install requests[socks]"
        return ConnectionFailed(text, retryable=False, provider=place.provider, cause=cause)
    if _has(chain, *_UNUSABLE):
        text = "the request could not be made: check base_url, headers and the proxy settings"
        return InvalidRequest(text, provider=place.provider, cause=cause)
    tls = [e for e in chain if isinstance(e, ssl.SSLError) and not isinstance(e, _TLS_CUT)]
    text = _words(chain, answering, place)
    if tls and not answering and not _has(chain, TimeoutError):
        text = f"{place.host} and this machine could not agree on TLS: check base_url"
    return ConnectionFailed(text, retryable=answering or not tls, provider=place.provider, cause=cause)


def _words(chain: list[BaseException], answering: bool, place: Place) -> str:
    host = place.host
    if _has(chain, ux.ProxyError, rx.ProxyError):
        return f"the proxy on the way to {host} refused or failed"
    if _has(chain, socket.gaierror, ux.NameResolutionError):
        return f"the name of {host} could not be resolved"
    if _has(chain, ConnectionRefusedError):
        return f"{host} refused the connection"
    if _has(chain, ux.ConnectTimeoutError) and _has(chain, TimeoutError):
        return f"no connection to {host} within {place.connect_timeout:g} s"
    if _has(chain, ux.ReadTimeoutError, TimeoutError):
        times = f"connect_timeout {place.connect_timeout:g} s, idle_timeout {place.idle_timeout:g} s"
        return f"{host} did not answer in time ({times})"
    if answering:
        return f"{host} closed the connection in the middle of its answer"
    if _has(chain, ConnectionError, ux.ProtocolError, *_TLS_CUT):
        return f"{host} closed the connection before it answered"
    return f"the connection to {host} failed"


def _has(chain: list[BaseException], *kinds: type[BaseException]) -> bool:
    return any(isinstance(each, kinds) for each in chain)


def _chain(raised: BaseException) -> Iterator[BaseException]:
    """The exception and all that it carries: its causes, contexts, reasons and arguments."""
    seen: set[int] = set()
    waiting: list[object] = [raised]
    while waiting and len(seen) < 50:
        each = waiting.pop(0)
        if isinstance(each, BaseException) and id(each) not in seen:
            seen.add(id(each))
            yield each
            waiting += [*each.args, getattr(each, "reason", None), each.__cause__, each.__context__]


def _root(chain: list[BaseException]) -> BaseException | None:
    """The innermost exception that is not of `requests` or `urllib3`, without the frames that held the headers."""
    own = (rx.RequestException, ux.HTTPError)
    found = next((each for each in reversed(chain) if not isinstance(each, own)), None)
    if found is not None:
        found.__cause__ = found.__context__ = None
        found = found.with_traceback(None)
    return found
