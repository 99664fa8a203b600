"""Profiles: what they may say, how they are found, and how mistakes in them are told."""

import hashlib
import re
from pathlib import Path

import pytest

from agent.core.errors import UsageError
from agent.server.model_file import FileSource, PypiSource, numbered
from agent.server.profile import ModelCard, Profile, Sampling, Speculation, Tools
from agent.server.profile_files import find_profile, list_profiles, load_profile
from agent.server.profile_text import MEANINGS

SHIPPED = Path(__file__).parents[2] / "server_profiles"
SHA = "ab" * 32
HUB = '[[target.sources]]\nkind = "hub"\nrepo = "a/b"\n'
KNOWN_REPOSITORIES = (
    "unsloth/gemma-4-31B-it-GGUF",
    "Anbeeld/gemma-4-31B-it-DFlash-GGUF",
    "unsloth/Qwen3.6-27B-GGUF",
    "unsloth/Qwen3.6-27B-MTP-GGUF",
    "Anbeeld/Qwen3.6-27B-DFlash-GGUF",
    "Qwen/Qwen3-14B-GGUF",
)
MINIMAL = '[target]\nfile = "m.gguf"\n'


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    own, shipped = tmp_path / "own", tmp_path / "shipped"
    own.mkdir()
    shipped.mkdir()
    return [own, shipped]


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.toml"
    path.write_text(text, "utf-8")
    return path


def mistake(text: str, folders: list[Path]) -> UsageError:
    write(folders[0], "p", text)
    with pytest.raises(UsageError) as caught:
        load_profile("p", folders)
    return caught.value


@pytest.mark.parametrize("name", ["embedded", "embedded-draft", "embedded-small", "embedded-dflash"])
def test_shipped_profile_is_valid_and_can_be_fetched(name: str):
    profile = load_profile(name, [SHIPPED])
    assert profile.description
    assert profile.tools.protocol == "constrained"
    assert all(file.sha256 and file.bytes and file.sources for file in profile.model_files)


def test_draft_profile_differs_from_its_base_in_the_draft_only():
    base, draft = load_profile("embedded", [SHIPPED]), load_profile("embedded-draft", [SHIPPED])
    assert [file.file for file in base.model_files] == [draft.model_files[0].file]
    assert draft.speculation.model_dump(exclude_defaults=True) == {"kind": "draft", "n_max": 6, "n_min": 0}
    assert (draft.target, draft.context, draft.sampling) == (base.target, base.context, base.sampling)


def test_drafter_that_comes_along_is_the_file_that_its_profile_names():
    draft = load_profile("embedded-dflash", [SHIPPED]).model_files[1]
    found = draft.found_in(Path("no-folder"))
    assert found is not None
    assert found == SHIPPED / "drafts" / draft.file
    assert hashlib.sha256(found.read_bytes()).hexdigest() == draft.sha256


def test_relative_copy_starts_at_the_folder_of_the_profile_that_names_it(folders: list[Path]):
    copy = '[[target.sources]]\nkind = "file"\npath = "near/a.gguf"\n'
    write(folders[1], "base", f'[target]\nfile = "a.gguf"\n{copy}')
    write(folders[0], "p", 'extends = "base"\n')
    target = load_profile("p", folders).target
    assert target is not None
    assert target.sources[0] == FileSource(kind="file", path=str(folders[1] / "near" / "a.gguf"))


@pytest.mark.parametrize("path", ["~/a.gguf", "/elsewhere/a.gguf"])
def test_other_copies_are_where_their_path_says(path: str, folders: list[Path]):
    copy = f'[[target.sources]]\nkind = "file"\npath = "{path}"\n'
    write(folders[0], "p", f'[target]\nfile = "a.gguf"\n{copy}')
    target = load_profile("p", folders).target
    assert target is not None
    assert target.sources[0] == FileSource(kind="file", path=path)


def test_name_is_that_of_the_file(folders: list[Path]):
    write(folders[0], "mine", MINIMAL)
    assert load_profile("mine", folders).name == "mine"
    assert "but the file is called p.toml" in mistake('name = "other"\n' + MINIMAL, folders).message


def test_own_profile_hides_a_shipped_one_and_may_extend_it(folders: list[Path]):
    write(folders[1], "embedded", f"context = 1000\nslots = 2\n{MINIMAL}")
    write(folders[0], "embedded", 'extends = "embedded"\ncontext = 2000\n')
    profile = load_profile("embedded", folders)
    assert (profile.context, profile.slots) == (2000, 2)
    assert [found.path.parent for found in list_profiles(folders)] == [folders[0]]


def test_path_to_a_file_is_a_profile_too(folders: list[Path], tmp_path: Path):
    path = write(tmp_path, "loose", 'extends = "base.toml"\n[tools]\nprotocol = "native"\n')
    write(tmp_path, "base", MINIMAL)
    assert load_profile(str(path), folders).tools.protocol == "native"


def test_tables_are_merged_key_by_key(folders: list[Path]):
    write(folders[1], "base", f"{MINIMAL}[sampling]\ntemperature = 0.5\ntop_k = 7\n")
    write(folders[0], "p", 'extends = "base"\n[sampling]\ntop_k = 9\n')
    assert load_profile("p", folders).sampling.model_dump(exclude_none=True) == {
        "temperature": 0.5,
        "top_k": 9,
    }


@pytest.mark.parametrize(
    ("own", "seconds"),
    [("", 0.5), ("batch = 64", 0), ("ubatch = 16", 0), ("batch = 64\nbatch_seconds = 2", 2)],
)
def test_who_says_how_large_batches_are_gets_them_so(folders: list[Path], own: str, seconds: float):
    write(folders[1], "base", f"batch = 32\nbatch_seconds = 0.5\n{MINIMAL}")
    write(folders[0], "mine", f'extends = "base"\n{own}\n')
    assert load_profile("mine", folders).batch_seconds == seconds


def test_another_model_file_does_not_inherit_the_checksum(folders: list[Path]):
    write(folders[1], "base", f'[target]\nfile = "a.gguf"\nsha256 = "{SHA}"\nbytes = 5\n')
    write(folders[0], "p", 'extends = "base"\n[target]\nfile = "b.gguf"\n')
    target = load_profile("p", folders).target
    assert target is not None
    assert (target.file, target.sha256, target.bytes) == ("b.gguf", None, None)


def test_same_model_file_keeps_the_checksum(folders: list[Path]):
    write(folders[1], "base", f'[target]\nfile = "a.gguf"\nsha256 = "{SHA}"\nbytes = 5\n')
    write(folders[0], "p", 'extends = "base"\n[target]\nbytes = 6\n')
    target = load_profile("p", folders).target
    assert target is not None
    assert (target.sha256, target.bytes) == (SHA, 6)


def test_circle_is_shown_as_one(folders: list[Path]):
    write(folders[0], "a", 'extends = "b"\n')
    write(folders[0], "b", 'extends = "a"\n')
    with pytest.raises(UsageError, match="in a circle: a -> b -> a"):
        load_profile("a", folders)


def test_unknown_profile_lists_close_names(folders: list[Path]):
    write(folders[1], "embedded", MINIMAL)
    with pytest.raises(UsageError, match="unknown profile 'embeded'") as caught:
        load_profile("embeded", folders)
    assert "did you mean embedded?" in caught.value.hint


def test_unknown_profile_without_a_close_name_lists_all(folders: list[Path]):
    write(folders[1], "embedded", MINIMAL)
    with pytest.raises(UsageError) as caught:
        load_profile("zzz", folders)
    assert "there are: embedded" in caught.value.hint


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "", ".", "a/../a", "\0"])
def test_name_never_leads_out_of_the_folders(name: str, folders: list[Path]):
    write(folders[0].parent, "secret", MINIMAL)
    with pytest.raises(UsageError, match="unknown profile"):
        find_profile(name, folders)


def test_parent_that_is_unknown_is_told_with_the_file_that_wants_it(folders: list[Path]):
    assert mistake('extends = "nobody"', folders).message.endswith(
        "p.toml: extends: unknown profile 'nobody'"
    )


@pytest.mark.parametrize(
    ("text", "key", "suggestion"),
    [
        (f"contxt = 5\n{MINIMAL}", "'contxt'", "context"),
        (f"{MINIMAL}[speculation]\nnmax = 5\n", "'speculation.nmax'", "n_max"),
        (f"{MINIMAL}sha265 = 'x'\n", "'target.sha265'", "sha256"),
        (
            f'{MINIMAL}sha256 = "{SHA}"\nbytes = 1\n{HUB}revison = "x"\n',
            "'target.sources.0.revison'",
            "revision",
        ),
    ],
)
def test_unknown_key_is_a_mistake_with_a_suggestion(
    text: str, key: str, suggestion: str, folders: list[Path]
):
    error = mistake(text, folders)
    assert f"unknown key {key}" in error.message
    assert f"did you mean '{suggestion}'?" in error.hint


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the embedded engine needs a [target] table"),
        ('engine = "llama-server"\n', "the llama-server engine needs a [target] table"),
        ('engine = "remote"\n', "needs url"),
        (f'{MINIMAL}[speculation]\nkind = "draft"\n', "needs a [draft] table"),
        (f'context = "8192"\n{MINIMAL}', "context: Input should be a valid integer"),
        (f"context = 3\n{MINIMAL}", "context: Input should be greater than or equal to 256"),
        (f'{MINIMAL}sha256 = "abc"\n', "target.sha256: must be 64 hexadecimal digits"),
        (f'{MINIMAL}[[target.sources]]\nkind = "hub"\nrepo = "a/b"\n', "sha256 and bytes are needed"),
        ('[target]\nfile = "../m.gguf"\n', "must be a plain file name"),
        (f'{MINIMAL}[tools]\nprotocol = "magic"\n', "tools.protocol: Input should be"),
        (f'{MINIMAL}[speculation]\nkind = ["ngram-mod", "ngram-mod"]\n', "speculation: kind must name each"),
        (f"{MINIMAL}[speculation]\nkind = []\n", "speculation: kind must name each kind once"),
        (f'{MINIMAL}[speculation]\nkind = "none"\nalso = ["ngram-mod"]\n', "cannot be combined"),
        (f'{MINIMAL}[speculation]\nkind = ["mtp", "dspark"]\n', "speculation.also.0: Input should be"),
        (f'kv_type_k = "turbo9"\n{MINIMAL}', "kv_type_k: Input should be"),
        (f'gpu_layers = "some"\n{MINIMAL}', "gpu_layers: Input should be 'auto' or 'all'"),
        (f'kv_type_k = "turbo3"\n{MINIMAL}', "the embedded engine does not know the KV type turbo3"),
        (f'extra_args = ["--x"]\n{MINIMAL}', "extra_args is not for the embedded engine"),
        (f'{MINIMAL}[speculation]\nkind = "suffix"\n', "does not know the speculation kind suffix"),
        (f"{MINIMAL}[speculation]\ncross_context = 5\n", "speculation.cross_context is not for the embedded"),
        ("= 5", "is not valid TOML"),
        ("extends = 5", "extends must be the name of a profile"),
    ],
)
def test_wrong_value_is_told_with_its_place(text: str, complaint: str, folders: list[Path]):
    error = mistake(text, folders)
    assert complaint in error.message
    assert "p.toml" in error.message
    assert "\n" not in error.message


def test_file_that_is_no_text_is_told(folders: list[Path]):
    (folders[0] / "p.toml").write_bytes(b"context = \xff")
    with pytest.raises(UsageError, match="is not UTF-8 text"):
        load_profile("p", folders)


def test_part_numbers_are_filled_in_plain_and_padded():
    assert numbered("x-part{i}/part{i:02d}.bin{j}", 7) == "x-part7/part07.bin{j}"


def test_several_parts_need_a_number_in_the_name():
    with pytest.raises(ValueError, match=r"needs \{i\}"):
        PypiSource(kind="pypi", name="x", member="y", last=2)


def test_hub_file_of_a_server_that_is_started_by_hand_needs_no_checksum(folders: list[Path]):
    write(folders[0], "p", f'engine = "llama-server"\n{MINIMAL}{HUB}')
    assert load_profile("p", folders).model_files[0].sha256 is None


def test_file_out_of_wheels_needs_a_checksum_in_any_engine(folders: list[Path]):
    wheels = '[[target.sources]]\nkind = "pypi"\nname = "x"\nmember = "y"\n'
    error = mistake(f'engine = "llama-server"\n{MINIMAL}{wheels}', folders)
    assert "sha256 and bytes are needed" in error.message


def test_list_of_kinds_has_the_one_with_a_model_first(folders: list[Path]):
    write(
        folders[0], "p", f'{MINIMAL}[draft]\nfile = "d.gguf"\n[speculation]\nkind = ["ngram-mod", "draft"]\n'
    )
    speculation = load_profile("p", folders).speculation
    assert (speculation.kind, speculation.also, speculation.kinds) == (
        "draft",
        ("ngram-mod",),
        ("draft", "ngram-mod"),
    )


def test_key_of_a_table_at_the_top_is_told_where_it_belongs(folders: list[Path]):
    assert mistake(f"n_max = 5\n{MINIMAL}", folders).hint == "it belongs below [speculation]"


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        ("port = 8910\n", "http://127.0.0.1:8910"),
        ('port = 8910\nhost = "0.0.0.0"\n', "http://127.0.0.1:8910"),
        ('port = 1\nhost = "::1"\n', "http://[::1]:1"),
        ('port = 1\nhost = "box"\n', "http://box:1"),
        ('port = 1\nurl = "http://gateway"\n', "http://gateway"),
        ("", None),
    ],
)
def test_server_that_is_started_by_hand_is_found_where_its_profile_puts_it(
    settings: str, url: str | None, folders: list[Path]
):
    write(folders[0], "p", f'engine = "llama-server"\n{settings}{MINIMAL}')
    assert load_profile("p", folders).url == url


def test_models_of_other_engines_are_not_files_of_ours(folders: list[Path]):
    write(folders[0], "p", f'engine = "vllm"\nmodel = "maker/model"\n{MINIMAL}')
    assert load_profile("p", folders).model_files == ()


def test_every_key_has_a_meaning_for_people():
    tables = (ModelCard, Profile, Sampling, Speculation, Tools)
    parts = {*tables_of_profile(), "name", "sources"}
    keys = {key for table in tables for key in table.model_fields} - parts - ModelCard.model_fields.keys()
    assert keys - MEANINGS.keys() == set()
    assert MEANINGS.keys() - keys == {"file", "sha256", "bytes"}


def tables_of_profile() -> set[str]:
    return {"target", "draft", "speculation", "sampling", "tools", "model_card"}


@pytest.mark.parametrize("key", [key for key in Profile.model_fields if key not in ("model_card", "tools")])
def test_every_key_is_documented(key: str):
    text = (SHIPPED.parent / "docs" / "profiles.md").read_text("utf-8")
    assert re.search(rf"`(?:\[|\w+\.)?{key}[`\].]", text), key


@pytest.mark.parametrize("key", Speculation.model_fields)
def test_every_key_of_speculation_is_documented(key: str):
    assert f"`{key}`" in (SHIPPED.parent / "docs" / "profiles.md").read_text("utf-8")


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.toml")), ids=lambda path: path.stem)
def test_shipped_profile_is_in_the_table_of_its_folder(path: Path):
    assert f"| `{path.stem}` |" in (SHIPPED / "README.md").read_text("utf-8")


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.toml")), ids=lambda path: path.stem)
def test_every_file_of_a_shipped_profile_can_be_fetched_and_checked(path: Path):
    profile = load_profile(path.stem, [SHIPPED])
    for file in profile.model_files:
        hubs = [source.repo for source in file.sources if source.kind == "hub"]
        assert file.is_checked or all(repo in KNOWN_REPOSITORIES for repo in hubs)
        assert file.sources
