"""Reading bytes as text so that writing the text back gives the same bytes."""

import codecs
import re
from dataclasses import dataclass

BINARY_SAMPLE_BYTES = 8000

# Longest mark first: the UTF-32 one begins with the UTF-16 one.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROL_BYTES = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f]")
_SURROGATES = re.compile("[\ud800-\udfff]")
# GBK's double-byte characters, and the part of them that nearly all Chinese text is made of: the 3,755
# common characters and the punctuation of GB 2312, rows 16 to 55 and 1 to 3.
_GBK_PAIR = re.compile(rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]")
_COMMON_GBK_PAIR = re.compile(rb"[\xa1-\xa3\xb0-\xd7][\xa1-\xfe]")
_COMMON_GBK_PERCENT = 70
_GBK_SAMPLE_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How a file's text is stored."""

    encoding: str = "utf-8"
    errors: str = "strict"
    bom: bytes = b""

    def encode(self, text: str) -> bytes:
        """Bytes of a whole file with this text.

        Raises:
            UnicodeEncodeError: the encoding has no such character.
        """
        return self.bom + text.encode(self.encoding, self.errors)


@dataclass(frozen=True, slots=True)
class DecodedText:
    text: str
    format: TextFormat


def decode(data: bytes) -> DecodedText | None:
    """Decodes a whole file, or returns `None` for binary content.

    For the result, `decoded.format.encode(decoded.text) == data` holds always.
    """
    format_ = detect(data)
    if format_ is None:
        return None
    text = data[len(format_.bom) :].decode(format_.encoding, format_.errors)
    return DecodedText(text, format_)


def detect(data: bytes) -> TextFormat | None:
    """The format of a whole file's content, `None` if it is binary.

    Order: byte order mark, UTF-16 without one, UTF-8, UTF-8 with some broken bytes, GBK, Windows-1252,
    Latin-1. The last two fit any text of single bytes as far as keeping its bytes is concerned.
    """
    for bom, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(bom):
            return _exact(data, encoding, bom)
    sample = data[:BINARY_SAMPLE_BYTES]
    if b"\0" in sample:
        return _utf16_without_mark(data, sample)
    if len(_CONTROL_BYTES.findall(sample)) * 10 > len(sample):
        return None
    if _decodes(data, "utf-8", "strict"):
        return TextFormat()
    if _is_mostly_utf8(data):
        return TextFormat("utf-8", "surrogateescape")
    if _looks_like_gbk(data):
        for encoding in ("gbk", "gb18030"):
            if _decodes(data, encoding, "strict"):
                return TextFormat(encoding)
    if _decodes(data, "cp1252", "strict"):
        return TextFormat("cp1252")
    return TextFormat("latin-1")


def detect_beginning(sample: bytes) -> TextFormat | None:
    """Like `detect`, for the first part of a file that is too long to be read whole."""
    for bom, encoding in _BYTE_ORDER_MARKS:
        if sample.startswith(bom):
            return TextFormat(encoding, "replace", bom)
    last_line = sample.rfind(b"\n") + 1
    return detect(sample[:last_line] or sample)


def presentable(text: str) -> str:
    """The text without lone surrogates, which no JSON or terminal can carry."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def _exact(data: bytes, encoding: str, bom: bytes) -> TextFormat | None:
    errors = ("strict", "surrogateescape") if encoding == "utf-8" else ("strict", "surrogatepass")
    body = data[len(bom) :]
    for handler in errors:
        if _decodes(body, encoding, handler):
            return TextFormat(encoding, handler, bom)
    return None


def _utf16_without_mark(data: bytes, sample: bytes) -> TextFormat | None:
    """Western text in UTF-16 has a zero in nearly every second byte and nowhere else."""
    if len(data) % 2 or len(sample) < 4:
        return None
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    for encoding, zeros, others in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if zeros * 10 >= half * 7 and others == 0 and _decodes(data, encoding, "strict"):
            return TextFormat(encoding)
    return None


def _is_mostly_utf8(data: bytes) -> bool:
    """Whether there are at least as many proper characters beyond ASCII as broken bytes."""
    escaped = data.decode("utf-8", "surrogateescape")
    broken = len(data) - len(escaped.encode("utf-8", "ignore"))
    beyond_ascii = len(escaped) - len(escaped.encode("ascii", "ignore")) - broken
    return beyond_ascii >= broken


def _looks_like_gbk(data: bytes) -> bool:
    """Western text has letters beyond ASCII one at a time, other double-byte text has rarer pairs."""
    first = next(
        (
            index
            for index in range(0, len(data), _GBK_SAMPLE_BYTES)
            if not data[index : index + _GBK_SAMPLE_BYTES].isascii()
        ),
        0,
    )
    pairs = _GBK_PAIR.findall(data[first : first + _GBK_SAMPLE_BYTES])
    common = sum(1 for pair in pairs if _COMMON_GBK_PAIR.fullmatch(pair))
    return common >= 2 and common * 100 >= len(pairs) * _COMMON_GBK_PERCENT


def _decodes(data: bytes, encoding: str, errors: str) -> bool:
    try:
        text = data.decode(encoding, errors)
    except UnicodeDecodeError:
        return False
    # UTF-8 is exact by construction; other codecs are asked, because the promise is about bytes.
    return encoding == "utf-8" or text.encode(encoding, errors) == data
