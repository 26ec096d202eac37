"""Every test here gives back what it opened, and meets no proxy, key, .netrc or configuration of its machine."""

from __future__ import annotations

import gc
import shutil
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gotato_gateway._providers import PROVIDERS

GRACE = 10.0
"""Seconds in which a socket that is being closed may go; a leak is there for good, or until a timeout of minutes."""
_SURROUNDINGS = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NETRC")


@pytest.fixture(autouse=True)
def plain_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No variable of the surroundings has a say."""
    for name in _SURROUNDINGS:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for provider in PROVIDERS.values():
        for variable in (provider.key_variable or "NO_KEY", *provider.other_variables):
            monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "no-netrc"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-config"))
    monkeypatch.delenv("GOTATO_CONFIG", raising=False)


def open_sockets() -> set[str]:
    """The sockets of this process."""
    found: set[str] = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = str(entry.readlink())
        except OSError:  # the descriptor of this very listing
            continue
        if target.startswith("socket:"):
            found.add(target)
    return found


@pytest.fixture(autouse=True)
def no_socket_is_left() -> Iterator[None]:
    """Fail a test that leaves a socket behind."""
    if not Path("/proc/self/fd").is_dir():
        yield
        return
    before = open_sockets()
    yield
    end = time.monotonic() + GRACE
    while left := open_sockets() - before:
        assert time.monotonic() < end, f"sockets left behind: {len(left)}"
        gc.collect()  # on a busy machine this alone may take all the time, so what is left is looked at again
        time.sleep(0.01)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1, signed by itself, with its key in one file."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("the openssl command is not there")
    folder = tmp_path_factory.mktemp("tls")
    key, certificate, both = folder / "key.pem", folder / "certificate.pem", folder / "both.pem"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command, *names], check=True, capture_output=True)
    both.write_bytes(key.read_bytes() + certificate.read_bytes())
    return both


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    """A server's side of TLS with that certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context
