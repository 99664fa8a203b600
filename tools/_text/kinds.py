"""Saying what a binary file is instead of showing it."""

import struct

# First bytes of common formats, from the formats' own specifications.
_SIGNATURES = (
    (b"\x7fELF", "ELF program or library"),
    (b"MZ", "Windows program"),
    (b"\xcf\xfa\xed\xfe", "macOS program or library"),
    (b"%PDF-", "PDF document"),
    (b"PK\x03\x04", "ZIP archive or office document"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\0", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"GGUF", "GGUF model"),
    (b"\0asm", "WebAssembly module"),
    (b"\xca\xfe\xba\xbe", "Java class"),
    (b"OggS", "Ogg media"),
    (b"fLaC", "FLAC audio"),
    (b"ID3", "MP3 audio"),
    (b"II*\0", "TIFF image"),
    (b"MM\0*", "TIFF image"),
    (b"\0\0\1\0", "icon"),
)
_JPEG_SIZE_MARKERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def describe(data: bytes) -> str:
    """What the first bytes of a file look like; images with their size in pixels where it is known."""
    image = _image(data)
    if image:
        return image
    for signature, name in _SIGNATURES:
        if data.startswith(signature):
            return name
    return "MP4 or similar media" if data[4:8] == b"ftyp" else "binary data"


def is_known_binary(data: bytes) -> bool:
    """Whether the first bytes are those of a binary format, even where they would pass as text."""
    return data.startswith((b"%PDF-", b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a"))


def _image(data: bytes) -> str | None:
    try:
        if data.startswith(b"\x89PNG\r\n\x1a\n"):
            return _sized("PNG image", *struct.unpack(">II", data[16:24]))
        if data.startswith((b"GIF87a", b"GIF89a")):
            return _sized("GIF image", *struct.unpack("<HH", data[6:10]))
        if data.startswith(b"BM") and data[6:10] == b"\0\0\0\0":
            return _sized("BMP image", *struct.unpack("<ii", data[18:26]))
        if data.startswith(b"\xff\xd8\xff"):
            return _jpeg(data)
    except struct.error:  # the file ends before its size is told
        return "damaged image"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "WebP image"
    return None


def _jpeg(data: bytes) -> str:
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        if data[at + 1] in _JPEG_SIZE_MARKERS:
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return _sized("JPEG image", width, height)
        at += 2 + struct.unpack(">H", data[at + 2 : at + 4])[0]
    return "JPEG image"


def _sized(name: str, width: int, height: int) -> str:
    return f"{name}, {width}x{abs(height)} pixels"
