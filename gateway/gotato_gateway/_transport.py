"""Requests over `requests`: one pooled session for one adapter object, no retries, no redirects, no surprises.

What users of `requests` know still works (proxies, NO_PROXY, REQUESTS_CA_BUNDLE, a session of their own), except that a
`.netrc` never replaces the key.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase

from ._exchange import Exchange, Explain
from ._line import report_connections

_IDLE_CONNECTIONS = 64


class _Auth(AuthBase):
    """Sets the key itself: with an `auth` object, `requests` does not look into a `.netrc`."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers.update(self._headers)
        return request


class Transport:
    """Makes exchanges. Safe to use from several threads; between exchanges it holds idle connections only."""

    def __init__(self, *, connect_timeout: float, idle_timeout: float, session: requests.Session | None) -> None:
        self._connect_timeout, self._idle_timeout = connect_timeout, idle_timeout
        self._given = session
        self._sessions: dict[int, requests.Session] = {} if session is None else {os.getpid(): session}

    def exchange(
        self, url: str, body: bytes | None, *, headers: Mapping[str, str], auth: Mapping[str, str], explain: Explain
    ) -> Exchange:
        """A POST that sends `body` once it is opened, without one a GET. `auth` holds the headers with the key."""

        def send() -> requests.Response:
            session = self._session()
            report_connections(session, url, session.merge_environment_settings(url, {}, True, None, None))
            # Sent piece by piece, so that a slow upload is no stalled one.
            method, data = ("GET", None) if body is None else ("POST", io.BytesIO(body))
            return session.request(
                method,
                url,
                data=data,
                headers=dict(headers),
                auth=None if session.auth and not auth else _Auth(auth),
                timeout=(self._connect_timeout, self._idle_timeout),
                allow_redirects=False,  # a redirect would take the key to another host
                stream=True,
            )

        return Exchange(send, explain, self._idle_timeout)

    def _session(self) -> requests.Session:
        """The session of this process: after a fork, the parent's connections are the parent's."""
        pid = os.getpid()
        session = self._sessions.get(pid)
        if session is None:
            if self._given is None:
                made = requests.Session()
                adapter = HTTPAdapter(pool_maxsize=_IDLE_CONNECTIONS)
                made.mount("https://", adapter)
                made.mount("http://", adapter)
            else:
                made = self._given
                made.close()  # drops its pools; it opens new ones when it is used
            session = self._sessions.setdefault(pid, made)
            for other in [known for known in self._sessions if known != pid]:
                self._sessions.pop(other, None)
        return session
