"""Source distributions from package indexes and folders: sha256 decides, and nothing in them is run."""

import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.core.errors import ServerError
from agent.server.recipe import Sdist
from agent.server.sdist import PUBLIC_INDEX, Download, Indexes, fetch_sdist, unpack
from agent.server.sources import CancelledError
from tests.fakes.build_tools import make_sdist
from tests.fakes.fake_index import FakeIndex, fake_index


@pytest.fixture
def wanted(tmp_path: Path) -> Sdist:
    return make_sdist(tmp_path / "shelf")


@pytest.fixture
def index(tmp_path: Path, wanted: Sdist) -> Iterator[FakeIndex]:
    with fake_index(tmp_path / "shelf") as server:
        yield server


def fetch(wanted: Sdist, folder: Path, *simple: str, flat: tuple[str, ...] = (), **changes) -> Path:
    means = Download(indexes=Indexes(simple=simple, flat=flat), **changes)
    return fetch_sdist(wanted, folder, lambda done, total: None, means)


def test_an_index_over_http_delivers_the_file(tmp_path: Path, wanted: Sdist, index: FakeIndex):
    path = fetch(wanted, tmp_path / "got", index.url)
    assert path.read_bytes() == (tmp_path / "shelf" / wanted.file).read_bytes()
    assert index.asked == ["/simple/pack/", f"/files/{wanted.file}"]


def test_what_is_there_is_not_fetched_again(tmp_path: Path, wanted: Sdist, index: FakeIndex):
    fetch(wanted, tmp_path / "got", index.url)
    fetch(wanted, tmp_path / "got", index.url)
    assert len(index.asked) == 2


def test_a_broken_off_download_goes_on_where_it_was(tmp_path: Path, wanted: Sdist, index: FakeIndex):
    index.cut_after = 50
    with pytest.raises(ServerError):
        fetch(wanted, tmp_path / "got", index.url)
    path = fetch(wanted, tmp_path / "got", index.url)
    assert index.ranges == [None, "bytes=50-"]
    assert path.stat().st_size == wanted.bytes


def test_a_start_from_elsewhere_is_thrown_away_and_fetched_anew(
    tmp_path: Path, wanted: Sdist, index: FakeIndex
):
    (tmp_path / "got").mkdir()
    (tmp_path / "got" / f"{wanted.file}.part").write_bytes(b"x" * 20)
    fetch(wanted, tmp_path / "got", index.url)
    assert index.ranges == ["bytes=20-", None]


def test_a_wrong_checksum_is_refused_and_nothing_of_it_is_kept(
    tmp_path: Path, wanted: Sdist, index: FakeIndex
):
    other = replace(wanted, sha256="0" * 64)
    with pytest.raises(ServerError, match="wrong sha256, expected 0000"):
        fetch(other, tmp_path / "got", index.url)
    assert list((tmp_path / "got").iterdir()) == []


def test_a_longer_file_than_it_should_be_is_refused(tmp_path: Path, wanted: Sdist, index: FakeIndex):
    with pytest.raises(ServerError, match="longer than the 30 bytes"):
        fetch(replace(wanted, bytes=30), tmp_path / "got", index.url)


def test_the_next_index_is_asked_when_one_has_nothing(tmp_path: Path, wanted: Sdist, index: FakeIndex):
    fetch(wanted, tmp_path / "got", f"{index.url}/empty", index.url)
    assert index.asked[0] == "/simple/empty/pack/"


def test_an_index_in_a_folder_and_a_folder_of_files_work_too(tmp_path: Path, wanted: Sdist):
    page = tmp_path / "index" / "simple" / "pack" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text(f'<a href="../../../shelf/{wanted.file}#sha256=1">x</a>', "utf-8")
    base = (tmp_path / "index" / "simple").as_uri()
    assert fetch(wanted, tmp_path / "one", base).is_file()
    assert fetch(wanted, tmp_path / "two", flat=(str(tmp_path / "shelf"),)).is_file()


@pytest.mark.parametrize(("status", "reason"), [(403, "HTTP status 403"), (404, "it is not there")])
def test_an_index_that_refuses_is_named_without_its_password(
    tmp_path: Path, wanted: Sdist, index: FakeIndex, status: int, reason: str
):
    index.status = status
    with pytest.raises(ServerError) as caught:
        fetch(wanted, tmp_path / "got", index.url.replace("//", "//me:secret@"))
    assert reason in caught.value.message
    assert "secret" not in str(caught.value)
    assert wanted.sha256 in caught.value.hint


def test_no_connection_is_said_as_such(tmp_path: Path, wanted: Sdist, index: FakeIndex):
    index.close()
    with pytest.raises(ServerError, match="no connection"):
        fetch(wanted, tmp_path / "got", index.url)


def test_a_cancelled_download_keeps_what_it_has(tmp_path: Path, wanted: Sdist, index: FakeIndex):
    with pytest.raises(CancelledError):
        fetch(wanted, tmp_path / "got", index.url, cancelled=lambda: True)


def test_indexes_are_those_of_pip_and_uv():
    environment = {
        "PIP_INDEX_URL": "https://one.example/simple/",
        "PIP_EXTRA_INDEX_URL": "https://two.example/simple https://three.example/simple",
        "UV_INDEX": "named=https://four.example/simple",
        "PIP_FIND_LINKS": "/some/wheels",
        "PIP_CERT": "/some/bundle.pem",
    }
    found = Indexes.configured(environment)
    assert found.simple == tuple(f"https://{name}.example/simple" for name in ("one", "two", "three", "four"))
    assert found.flat == ("/some/wheels",)
    assert found.certificates == "/some/bundle.pem"


def test_the_public_index_is_asked_when_nothing_is_configured():
    assert Indexes().simple == (PUBLIC_INDEX,)


def test_only_the_folder_of_the_server_is_unpacked(tmp_path: Path):
    files = {"pack-1/server/CMakeLists.txt": "x", "pack-1/server/a/b.c": "y", "pack-1/setup.py": "z"}
    wanted = make_sdist(tmp_path / "shelf", files)
    unpack(tmp_path / "shelf" / wanted.file, wanted.folder, tmp_path / "source")
    found = {str(path.relative_to(tmp_path)) for path in (tmp_path / "source").rglob("*") if path.is_file()}
    assert found == {"source/CMakeLists.txt", "source/a/b.c"}


def test_a_link_that_leads_outside_is_refused(tmp_path: Path):
    archive = tmp_path / "evil.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        link = tarfile.TarInfo("pack-1/server/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        tar.addfile(link)
    with pytest.raises(ServerError, match="cannot be unpacked"):
        unpack(archive, "pack-1/server", tmp_path / "source")
    assert not (tmp_path / "source").exists()


def test_a_name_that_climbs_out_is_refused(tmp_path: Path):
    archive = tmp_path / "evil.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("pack-1/server/../../../evil"))
    with pytest.raises(ServerError, match="points outside"):
        unpack(archive, "pack-1/server", tmp_path / "source")
    assert not (tmp_path.parent / "evil").exists()


def test_a_damaged_archive_is_an_error_with_a_way_out(tmp_path: Path):
    archive = tmp_path / "half.tar.gz"
    archive.write_bytes(b"\x1f\x8b\x08\x00rubbish")
    with pytest.raises(ServerError) as caught:
        unpack(archive, "pack-1/server", tmp_path / "source")
    assert "delete" in caught.value.hint


def test_an_archive_without_a_source_says_so(tmp_path: Path):
    wanted = make_sdist(tmp_path / "shelf", {"pack-1/server/readme": "x"})
    with pytest.raises(ServerError, match="holds no source"):
        unpack(tmp_path / "shelf" / wanted.file, wanted.folder, tmp_path / "source")
