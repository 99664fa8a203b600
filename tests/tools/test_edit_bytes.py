"""Whatever a file is stored as, an edit changes the bytes of the replaced text and no others."""

import codecs

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tools._edit.matching import find
from tools._text.encodings import decode
from tools._text.line_ends import NormalisedText, normalise

STORED_AS = {
    "utf-8": ("utf-8", b""),
    "utf-8 with mark": ("utf-8", codecs.BOM_UTF8),
    "utf-16-le with mark": ("utf-16-le", codecs.BOM_UTF16_LE),
    "utf-16-be with mark": ("utf-16-be", codecs.BOM_UTF16_BE),
    "latin-1": ("latin-1", b""),
    "gbk": ("gbk", b""),
}
CHINESE = "配置文件测试数据"

# The letters of each file are in both Latin-1 and UTF-8; the old text is marked to be unique.
line = st.text(st.sampled_from("abc \tü\xa0"), max_size=6)
ends = st.sampled_from(["\n", "\r\n"])


@st.composite
def document(draw: st.DrawFn) -> str:
    parts = draw(st.lists(st.tuples(line, ends), max_size=5))
    return "".join(text + end for text, end in parts) + draw(line)


@pytest.mark.parametrize("stored", STORED_AS)
@settings(deadline=None)
@given(before=document(), old=document(), after=document(), new=document())
def test_bytes_outside_the_replaced_text_stay_identical(
    stored: str, before: str, old: str, after: str, new: str
):
    encoding, mark = STORED_AS[stored]
    if stored == "gbk":
        old, new = f"@{old}{CHINESE}#", f"@{new}!"
        before, old, after, new = (
            text.replace("ü", "数").replace("\xa0", "据") for text in (before, old, after, new)
        )
    else:
        old, new = f"«{old}»", f"«{new}!"
    data = mark + (before + old + after).encode(encoding)
    decoded = decode(data)
    assume(decoded is not None)
    assert decoded is not None
    assume(decoded.text == before + old + after)  # short Latin-1 texts can be valid UTF-8

    content = NormalisedText(decoded.text)
    found = find(content.text, normalise(old), normalise(new))
    assert found is not None
    text = content.with_replacements((match.start, match.end, match.replacement) for match in found.matches)
    result = decoded.format.encode(text)

    assert result.startswith(mark + before.encode(encoding))
    assert result.endswith(after.encode(encoding))
    assert normalise(text) == normalise(before) + normalise(new) + normalise(after)


@settings(deadline=None)
@given(data=st.binary(max_size=200))
def test_decoding_and_encoding_gives_the_same_bytes(data: bytes):
    decoded = decode(data)

    assert decoded is None or decoded.format.encode(decoded.text) == data


@settings(deadline=None)
@given(
    text=st.text(max_size=50), encoding=st.sampled_from(["utf-8", "utf-16", "utf-32", "utf-8-sig", "cp1252"])
)
def test_text_in_any_encoding_gives_the_same_bytes(text: str, encoding: str):
    data = text.encode(encoding, "ignore")
    decoded = decode(data)

    assert decoded is None or decoded.format.encode(decoded.text) == data


@settings(deadline=None)
@given(text=document(), pick=st.tuples(st.integers(0, 60), st.integers(0, 60)), new=document())
def test_a_line_end_between_the_lines_is_not_split(text: str, pick: tuple[int, int], new: str):
    content = NormalisedText(text)
    start, end = sorted(min(position, len(content.text)) for position in pick)

    result = content.with_replacements([(start, end, new)])

    assert normalise(result) == content.text[:start] + normalise(new) + content.text[end:]
    assert "\r" not in result.replace("\r\n", "")


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("a\r\nb\r\nc\n", "b", "b\nx", "a\r\nb\r\nx\r\nc\n"),
        ("a\nb\r\nc\n", "a\nb\nc", "a\nb\nx\nc", "a\nb\r\nx\nc\n"),
        ("a\r\nb", "b", "b\nc", "a\r\nb\r\nc"),
        ("a", "a", "a\nb", "a\nb"),
        ("a\r\nb\r\n", "a\nb\n", "", ""),
    ],
)
def test_new_lines_end_like_their_neighbours(text: str, old: str, new: str, expected: str):
    content = NormalisedText(text)
    start = content.text.index(old)

    assert content.with_replacements([(start, start + len(old), new)]) == expected


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ('# 配置文件\nname = "测试"\n', "gbk"),
        ("# 配置文件测试\n# 𠀀\n", "gb18030"),
        ("# größe für äöü\n", "cp1252"),
        ("# ÄÖÜ größe été\n", "cp1252"),
        ("# Настройки\n", "utf-8"),
        ("# 配置文件\n", "utf-8"),
    ],
)
def test_text_is_read_in_the_encoding_that_it_has(text: str, encoding: str):
    decoded = decode(text.encode(encoding))

    assert decoded is not None
    assert (decoded.text, decoded.format.encoding) == (text, encoding)
