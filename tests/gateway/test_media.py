"""What bytes are, whatever their label says."""

from __future__ import annotations

import pytest

from gotato_gateway._media import Media, from_data_url, image, media, sniff
from gotato_py import InvalidRequest


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBP", "image/webp"),
        (b"RIFF\x00\x00\x00\x00WAVE", "audio/wav"),
        (b"RIFF\x00\x00\x00\x00AVI ", ""),
        (b"ID3\x03", "audio/mp3"),
        (b"\xff\xfb\x90", "audio/mp3"),
        (b"%PDF-1.7", "application/pdf"),
        (b"", ""),
        (b"text", ""),
    ],
)
def test_bytes_show_what_they_are(data: bytes, kind: str) -> None:
    """The first bytes of the known formats are recognised."""
    assert sniff(data) == kind


def test_a_label_counts_where_bytes_are_silent() -> None:
    """Bytes that show nothing are what their label says, in its usual spelling."""
    assert media(b"x", " Image/JPG; q=1").media_type == "image/jpeg"
    assert image(b"x", "image/webp").media_type == "image/webp"
    with pytest.raises(InvalidRequest, match="application/pdf"):
        image(b"%PDF-", "image/png")


def test_data_urls_are_read() -> None:
    """Base64 and percent-encoded data URLs are read, others are none, broken ones are refused."""
    assert from_data_url("data:text/plain;charset=utf-8;base64,aGk=") == Media("text/plain", b"hi")
    assert from_data_url("DATA:text/plain,a%20b") == Media("text/plain", b"a b")
    assert from_data_url("https://x.example/data:") is None
    for broken in ("data:image/png;base64", "data:image/png;base64,a"):
        with pytest.raises(InvalidRequest, match="malformed"):
            from_data_url(broken)
