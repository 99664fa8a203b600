"""Reading what a llama-server supports from its help, in the layouts of four of them."""

import os
import sys
from pathlib import Path

import pytest

from agent.core.errors import UsageError
from agent.server.caps import DIALECTS, built_in, dialect_of, parse_help, read_capabilities
from agent.server.help_text import options_in

HELP = Path(__file__).parent / "cases" / "help"
ESSENTIAL = "-m, --model FNAME   x\n-c, --ctx-size N   x\n--port PORT   x\n"


def help_of(name: str) -> str:
    return (HELP / f"{name}.txt").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "dialect"),
    [
        ("beellama-may", "bee-0.3"),
        ("beellama-0.4", "bee-0.4"),
        ("llama.cpp", "llama.cpp"),
        ("ik_llama.cpp", "ik"),
    ],
)
def test_family_is_known_by_what_only_its_members_have(name: str, dialect: str):
    assert parse_help(help_of(name)).dialect == dialect


@pytest.mark.parametrize("dialect", DIALECTS)
def test_built_in_list_is_recognised_as_its_own_family(dialect):
    assert dialect_of(built_in(dialect)) == dialect


def test_flags_with_and_without_a_value_are_told_apart():
    found = parse_help(help_of("llama.cpp"))
    assert {"-kvo", "--kv-offload", "-nkvo", "--no-kv-offload", "--no-host"} <= found.switches
    assert {"-m", "--model", "--cpu-strict", "--spec-draft-model", "-md"} <= found.valued


@pytest.mark.parametrize(
    ("name", "flag", "allowed"),
    [
        ("llama.cpp", "-fa", ("on", "off", "auto")),
        ("llama.cpp", "-lm", ("auto", "none", "mmap", "mlock", "mmap+mlock", "dio")),
        ("llama.cpp", "--split-mode", ("none", "layer", "row", "tensor")),
        ("ik_llama.cpp", "--split-mode", ("none", "graph", "layer")),
        ("ik_llama.cpp", "--flash-attn", ("auto", "on", "off", "0", "1")),
    ],
)
def test_closed_lists_are_read_from_hints_and_from_bullets(name: str, flag: str, allowed: tuple[str, ...]):
    assert parse_help(help_of(name)).values[flag] == allowed


def test_list_that_is_broken_over_lines_is_read_whole():
    kv_types = parse_help(help_of("beellama-may")).values["--cache-type-k"]
    assert kv_types[:2] == ("f32", "f16")
    assert kv_types[-2:] == ("turbo2_tcq", "turbo3_tcq")


def test_kinds_of_speculation_on_a_continuation_line_are_found():
    found = parse_help(help_of("ik_llama.cpp"))
    assert {"none", "draft", "dflash", "mtp", "suffix"} <= set(found.spec_types)
    assert {"n_max", "cross_ctx", "ngram_size_n"} <= set(found.stage_keys)


@pytest.mark.parametrize(
    ("name", "combines"), [("beellama-may", False), ("llama.cpp", True), ("beellama-0.4", True)]
)
def test_form_of_the_hint_says_whether_kinds_can_be_combined(name: str, combines: bool):
    assert parse_help(help_of(name)).combines is combines


def test_list_of_kinds_that_beellama_0_3_1_does_not_act_on_is_no_combination():
    own = "--spec-dflash-cross-ctx N   x\n--spec-type none,draft-simple,ngram-mod,dflash   some\n"
    found = parse_help(f"{ESSENTIAL}{own}")
    assert found.spec_types == ("none", "draft-simple", "ngram-mod", "dflash")
    assert (found.dialect, found.combines) == ("bee-0.3", False)


def test_removed_flag_is_none_and_names_what_replaced_it():
    found = parse_help(help_of("llama.cpp"))
    assert not found.knows("--draft-max")
    assert found.removed["--draft-max"].startswith("--spec-draft-n-max")
    assert parse_help(help_of("beellama-may")).knows("--draft-max")


def test_placeholders_are_not_taken_for_a_list():
    found = parse_help(f"{ESSENTIAL}-dev, --device <dev1,dev2,..>   x\n--lora-scaled FNAME:SCALE,...   x\n")
    assert "--device" not in found.values
    assert {"--device", "--lora-scaled"} <= found.valued


@pytest.mark.parametrize(
    "option",
    [
        "--override-kv KEY=TYPE:VALUE,...   types: int, float, bool, str. example: x",
        "-lv, --verbosity N   how much. Values:\n" + " " * 40 + "- 0: nothing\n" + " " * 40 + "- 1: errors",
        "--lora FNAME   use comma-separated values to load several: a, b",
    ],
)
def test_explanation_is_not_taken_for_a_closed_list(option: str):
    assert parse_help(f"{ESSENTIAL}{option}\n").values == {}


def test_flag_of_ik_whose_help_hides_its_value_has_one():
    found = parse_help(help_of("ik_llama.cpp"))
    assert "--adaptive-target" in found.valued
    assert "--reasoning" in found.valued
    assert "--alias" in found.valued


@pytest.mark.parametrize(
    ("line", "flags", "hint"),
    [
        ("-h,    --help, --usage                  print it", ("-h", "--help", "--usage"), ""),
        ("         --temp N               how hot", ("--temp",), "N"),
        ("  -ctx-ckpt N, --ctx-checkpoints N", ("-ctx-ckpt", "--ctx-checkpoints"), "N"),
        (
            "--control-vector-layer-range START END   layers",
            ("--control-vector-layer-range",),
            "START END",
        ),
        ("         --embedding(s)         only that", ("--embedding", "--embeddings"), ""),
        ("-l TOKEN_ID(+/-)BIAS   more or less likely", ("-l",), "TOKEN_ID(+/-)BIAS"),
    ],
)
def test_head_of_an_option_is_taken_apart(line: str, flags: tuple[str, ...], hint: str):
    (option,) = options_in(line)
    assert (option.flags, option.hint) == (flags, hint)


def test_example_within_a_description_is_no_option():
    text = "--a N   x\n" + " " * 40 + "--b in the middle of a text\n" + " " * 44 + "--c as an example\n"
    assert [option.flags for option in options_in(text)] == [("--a",)]


@pytest.mark.parametrize("text", ["", "usage: ls [OPTION]...\n  -a, --all   all\n", "{}"])
def test_help_of_another_program_is_refused(text: str):
    with pytest.raises(UsageError, match="is no llama-server"):
        parse_help(text, source="/bin/ls")


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    """A program that prints a help and a version, and writes down how often it was run."""
    (tmp_path / "help.txt").write_text(help_of("llama.cpp"), "utf-8")
    path = tmp_path / "bin" / "llama-server"
    path.parent.mkdir()
    path.write_text(
        f"#!{sys.executable}\n"
        "import os, sys\n"
        "seen = sys.argv[1] + str('LLAMA_ARG_CTX_SIZE' in os.environ)\n"
        f"open({str(tmp_path / 'runs')!r}, 'a').write(seen)\n"
        "open('asked-here', 'w').close()\n"
        "if sys.argv[1] == '--help':\n"
        "    print('ggml_cuda_init: found 1 device', file=sys.stderr)\n"
        f"    print(open({str(tmp_path / 'help.txt')!r}).read())\n"
        "else: print('version: 0.6.0-dev (build 11434)', file=sys.stderr)\n",
        "utf-8",
    )
    path.chmod(0o755)
    return path


def runs(binary: Path) -> str:
    return (binary.parents[1] / "runs").read_text("utf-8")


def test_binary_is_asked_with_a_clean_environment(binary: Path, tmp_path: Path):
    found = read_capabilities(binary, environment={**os.environ, "LLAMA_ARG_CTX_SIZE": "1"})
    assert (found.dialect, found.version) == ("llama.cpp", "0.6.0-dev (build 11434)")
    assert found.source == str(binary)
    assert runs(binary) == "--helpFalse--versionFalse"


def test_binary_is_asked_in_its_own_folder(binary: Path):
    # One with backends as libraries loads those of the folder that it is started in.
    read_capabilities(binary, environment=os.environ)
    assert (binary.parent / "asked-here").exists()


def test_unchanged_binary_is_not_run_again(binary: Path, tmp_path: Path):
    first = read_capabilities(binary, tmp_path / "cache")
    assert read_capabilities(binary, tmp_path / "cache") == first
    os.utime(binary, (1, 1))
    assert read_capabilities(binary, tmp_path / "cache") == first
    assert runs(binary).count("--help") == 1


def test_changed_binary_is_run_again(binary: Path, tmp_path: Path):
    read_capabilities(binary, tmp_path / "cache")
    (tmp_path / "help.txt").write_text(help_of("ik_llama.cpp"), "utf-8")
    binary.write_text(binary.read_text("utf-8") + "# newer\n", "utf-8")
    assert read_capabilities(binary, tmp_path / "cache").dialect == "ik"


def test_changed_library_beside_it_counts_as_a_change(binary: Path, tmp_path: Path):
    library = binary.with_name("libllama-common.so.0")
    library.write_bytes(b"old")
    read_capabilities(binary, tmp_path / "cache")
    (tmp_path / "help.txt").write_text(help_of("beellama-0.4"), "utf-8")
    library.write_bytes(b"newer")
    assert read_capabilities(binary, tmp_path / "cache").dialect == "bee-0.4"


def test_damaged_note_only_costs_another_run(binary: Path, tmp_path: Path):
    read_capabilities(binary, tmp_path / "cache")
    (note,) = (tmp_path / "cache" / "capabilities").iterdir()
    note.write_text("{", "utf-8")
    assert read_capabilities(binary, tmp_path / "cache").dialect == "llama.cpp"


def test_folder_of_a_build_stands_for_the_server_in_it(binary: Path):
    assert read_capabilities(binary.parent).source == str(binary)


@pytest.mark.parametrize(
    ("content", "mode", "complaint"),
    [
        (None, 0, "there is no program"),
        ("", 0o644, "may not be run"),
        ("#!/bin/sh\nexit 3\n", 0o755, r"--help failed \(status 3\)"),
        ("#!/bin/sh\necho hello\n", 0o755, "is no llama-server"),
        ("#!/nowhere/sh\n", 0o755, "cannot run"),
    ],
)
def test_program_that_cannot_be_asked_is_told(content: str | None, mode: int, complaint: str, tmp_path: Path):
    path = tmp_path / "server"
    if content is not None:
        path.write_text(content, "utf-8")
        path.chmod(mode)
    with pytest.raises(UsageError, match=complaint):
        read_capabilities(path)
