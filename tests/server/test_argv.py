"""Single concepts of a profile as arguments of a llama-server, and what is said where it lacks one."""

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent.server.argv import Places, command_for
from agent.server.caps import built_in, parse_help
from agent.server.profile import DialectName, Profile
from tests.server.commands import codes, make, words

DRAFT = {"draft": {"file": "d.gguf"}}


@pytest.mark.parametrize(
    ("dialect", "setting", "expected"),
    [
        # loading: one flag in new servers, switches in the others
        ("llama.cpp", {"load_mode": "mlock"}, [("-lm", "mlock")]),
        ("llama.cpp", {"load_mode": "none"}, [("-lm", "none")]),
        ("bee-0.4", {"load_mode": "mmap+mlock"}, [("-lm", "mmap+mlock")]),
        ("bee-0.3", {"load_mode": "mlock"}, [("--no-mmap",), ("--mlock",)]),
        ("bee-0.3", {"load_mode": "mmap+mlock"}, [("--mlock",)]),
        ("bee-0.3", {"load_mode": "none"}, [("--no-mmap",)]),
        ("bee-0.3", {"load_mode": "mmap"}, [("--mmap",)]),
        ("bee-0.3", {"load_mode": "dio"}, [("--direct-io",)]),
        ("ik", {"load_mode": "mlock"}, [("--no-mmap",), ("--mlock",)]),
        # slots and context
        ("llama.cpp", {"slots": 2, "context": 1000}, [("-np", "2"), ("--ctx-size", "2000")]),
        ("llama.cpp", {"slots": 2, "unified_kv": True}, [
            ("--kv-unified",), ("--kv-unified-per-slot", "8192"),
        ]),
        ("bee-0.3", {"slots": 2, "unified_kv": True}, [("--kv-unified",)]),
        ("llama.cpp", {"slots": 2, "unified_kv": False}, [("--no-kv-unified",)]),
        # layers and devices
        ("llama.cpp", {"gpu_layers": "all"}, [("-ngl", "all")]),
        ("ik", {"gpu_layers": "all"}, [("-ngl", "999")]),
        ("ik", {"gpu_layers": 20}, [("-ngl", "20")]),
        ("llama.cpp", {"cpu_moe_layers": "all"}, [("--cpu-moe",)]),
        ("ik", {"cpu_moe_layers": 12}, [("--n-cpu-moe", "12")]),
        (
            "llama.cpp",
            {"devices": ["CUDA0", "CUDA1"], "split_mode": "layer", "tensor_split": [3, 1], "main_gpu": 1},
            [
                ("--device", "CUDA0,CUDA1"),
                ("--split-mode", "layer"),
                ("--tensor-split", "3.0,1.0"),
                ("--main-gpu", "1"),
            ],
        ),
        ("ik", {"split_mode": "graph"}, [("--split-mode", "graph")]),
        ("llama.cpp", {"threads": 6}, [("--threads", "6")]),
        ("llama.cpp", {"batch": 256, "ubatch": 512}, [("-b", "256"), ("-ub", "256")]),
        # prompt cache
        ("llama.cpp", {"cache_ram_mib": 4096}, [("--cache-ram", "4096")]),
        ("llama.cpp", {"checkpoints": 8, "checkpoint_step": 2048}, [
            ("--ctx-checkpoints", "8"), ("--checkpoint-min-step", "2048"),
        ]),
        ("ik", {"checkpoints": 8, "checkpoint_step": 2048}, [
            ("--ctx-checkpoints", "8"), ("--ctx-checkpoints-interval", "2048"),
        ]),
        ("llama.cpp", {"cache_reuse": 256, "slot_similarity": 0.5, "swa_full": True}, [
            ("--cache-reuse", "256"), ("--slot-prompt-similarity", "0.5"), ("--swa-full",),
        ]),
        ("llama.cpp", {"slot_save_path": "/srv/slots"}, [("--slot-save-path", "/srv/slots")]),
        # template and reasoning
        ("llama.cpp", {"jinja": False}, [("--no-jinja",)]),
        ("llama.cpp", {"chat_template": "chatml"}, [("--chat-template", "chatml")]),
        ("llama.cpp", {"chat_template_file": "/t.jinja"}, [("--chat-template-file", "/t.jinja")]),
        ("llama.cpp", {"template_arguments": {"a": [1, "é"]}}, [("--chat-template-kwargs", '{"a":[1,"é"]}')]),
        ("llama.cpp", {"preserve_reasoning": True}, [("--reasoning-preserve",)]),
        ("llama.cpp", {"preserve_reasoning": False}, [("--no-reasoning-preserve",)]),
        ("bee-0.3", {"preserve_reasoning": True}, [("--chat-template-kwargs", '{"preserve_thinking":true}')]),
        ("bee-0.3", {"template_arguments": {"enable_thinking": False}}, [
            ("--chat-template-kwargs", '{"enable_thinking":false}'),
        ]),
        ("llama.cpp", {"reasoning": "on", "reasoning_budget": -1, "reasoning_format": "deepseek"}, [
            ("--reasoning", "on"), ("--reasoning-budget", "-1"), ("--reasoning-format", "deepseek"),
        ]),
        # network and logs
        ("llama.cpp", {"host": "::1", "port": 99}, [("--host", "::1"), ("--port", "99")]),
        ("llama.cpp", {"api_key_file": "/k"}, [("--api-key-file", "/k")]),
        ("llama.cpp", {"cors_origins": "https://a.example"}, [("--cors-origins", "https://a.example")]),
        ("llama.cpp", {"log_file": "/l"}, [("--log-file", "/l")]),
        ("llama.cpp", {"log_verbosity": 4}, [("--log-verbosity", "4")]),
        ("ik", {"log_verbosity": 1}, [("--verbosity", "1")]),
        ("llama.cpp", {"log_prefix": False}, [("--no-log-prefix",)]),
        ("llama.cpp", {"sampling": {"repeat_penalty": 1.05}}, [("--repeat-penalty", "1.05")]),
    ],
)  # fmt: skip
def test_concept_has_the_words_of_the_dialect(
    dialect: DialectName, setting: dict[str, Any], expected: list[tuple[str, ...]]
):
    made = make(dialect, **setting)
    assert set(expected) <= words(made)
    assert codes(made) == ([], [])


@pytest.mark.parametrize(
    ("setting", "flag"),
    [
        ({"metrics": False}, "--metrics"),
        ({"log_timestamps": False}, "--log-timestamps"),
        ({"jinja": False}, "--jinja"),
    ],
)
def test_what_a_server_never_does_by_itself_needs_no_word(setting: dict[str, Any], flag: str):
    made = make("ik", **setting)
    assert flag not in made.argv
    assert codes(made) == ([], [])


@pytest.mark.parametrize(
    ("dialect", "setting", "code"),
    [
        ("ik", {"no_host": True}, "no_host"),
        ("ik", {"slots": 2, "unified_kv": True}, "unified_kv"),
        ("ik", {"cache_reuse": 1}, "cache_reuse"),
        ("ik", {"load_mode": "dio"}, "load_mode"),
        ("ik", {"log_timestamps": True}, "log_timestamps"),
        ("bee-0.3", {"cors_origins": "http://a"}, "cors_origins"),
        ("llama.cpp", {"split_mode": "tensor", **DRAFT, "speculation": {"kind": "draft"}}, "split-and-draft"),
        ("llama.cpp", {"template_arguments": {"enable_thinking": False}}, "enable-thinking"),
        ("llama.cpp", {"host": "0.0.0.0"}, "open-server"),
        ("bee-0.4", {"kv_type_k": "kvarn4", "kv_type_v": "q8_0"}, "one-sided-kvarn"),
    ],
)
def test_what_is_left_out_or_dangerous_is_a_warning(dialect: DialectName, setting: dict[str, Any], code: str):
    assert codes(make(dialect, **setting)) == ([], [code])


@pytest.mark.parametrize(
    ("dialect", "setting", "message"),
    [
        ("llama.cpp", {"kv_type_k": "turbo3"}, 'llama.cpp does not know kv_type_k = "turbo3", only f32, f16'),
        ("ik", {"kv_type_v": "kvarn4"}, 'ik_llama.cpp does not know kv_type_v = "kvarn4"'),
        ("bee-0.3", {"kv_type_k": "q8_KV"}, 'does not know kv_type_k = "q8_KV"'),
        ("llama.cpp", {"kv_type_v": "q8_0", "flash_attention": "off"}, "needs flash attention"),
        ("ik", {"split_mode": "tensor"}, 'does not know split_mode = "tensor"'),
        ("llama.cpp", {"split_mode": "graph"}, 'does not know split_mode = "graph"'),
        ("ik", {"reasoning_format": "auto"}, 'does not know reasoning_format = "auto"'),
    ],
)
def test_what_would_end_the_server_is_refused(dialect: DialectName, setting: dict[str, Any], message: str):
    made = make(dialect, **setting)
    assert len(made.refusals) == 1
    assert message in made.refusals[0].message
    assert made.refusals[0].hint


def test_storage_of_a_fork_is_refused_with_the_nearest_that_is_there():
    assert make("llama.cpp", kv_type_k="turbo3").refusals[0].hint == 'set kv_type_k = "q4_0"'
    assert make("bee-0.3", kv_type_k="kvarn3").refusals[0].hint == 'set kv_type_k = "turbo3"'


def test_storage_is_left_to_the_server_where_the_profile_says_nothing():
    assert "--cache-type-k" not in make().argv
    assert ("--cache-type-k", "f16") in words(make(kv_type_k="f16"))


def test_thinking_in_the_template_arguments_becomes_the_servers_own_switch():
    made = make("llama.cpp", template_arguments={"enable_thinking": False, "x": 1})
    assert {("--reasoning", "off"), ("--chat-template-kwargs", '{"x":1}')} <= words(made)


def test_flash_attention_was_a_switch_once():
    old = parse_help("-m, --model F   x\n-c, --ctx-size N   x\n--port P   x\n-fa, --flash-attn   x\n")
    assert ("--flash-attn",) in words(make(old, flash_attention="on"))
    assert "--flash-attn" not in make(old, flash_attention="off").argv


def test_build_for_the_processor_only_is_told_apart_from_a_wish_for_a_gpu():
    no_gpu = parse_help("-m, --model F   x\n-c, --ctx-size N   x\n--port P   x\n")
    made = make(no_gpu, gpu_layers="all")
    assert "gpu_layers is left out" in made.warnings[-1].message
    assert "processor only" in made.warnings[-1].hint


def test_server_without_cors_flags_is_warned_of_unless_it_wants_a_key():
    assert "cors" in {notice.code for notice in make("bee-0.3").warnings}
    assert "cors" not in {notice.code for notice in make("bee-0.3", api_key_file="/k").warnings}


def test_profile_without_a_port_gets_the_usual_one():
    assert ("--port", "8910") in words(make())


@pytest.mark.parametrize(
    ("extra", "message", "hint"),
    [
        (["--temprature", "1"], "does not know --temprature", "did you mean --temperature?"),
        (["--draft-max", "8"], "--draft-max is gone", "use --spec-draft-n-max"),
        (["--temp"], "--temp needs a value", "next item"),
        (["--no-host", "yes"], "--no-host takes no value", "remove"),
        (["--temp=1"], "'--temp=1' is one word", 'write "--temp", "1"'),
        (["word"], "'word' is neither a flag", "item of its own"),
        (["-fa", "maybe"], "-fa does not take 'maybe'", "it takes on, off, auto"),
        (["--api-key", "s3cret"], "--api-key would show a secret", "api_key_file"),
        (["--api-key=s3cret"], "--api-key would show a secret", "api_key_file"),
    ],
)
def test_extra_argument_that_would_end_the_server_is_refused(extra: list[str], message: str, hint: str):
    help_text = (Path(__file__).parent / "cases" / "help" / "llama.cpp.txt").read_text("utf-8")
    (refusal,) = make(parse_help(help_text), extra_args=extra).refusals
    assert message in refusal.message
    assert hint in refusal.hint
    assert "s3cret" not in refusal.message + refusal.hint


def test_extra_argument_unknown_to_a_built_in_list_is_passed_on_with_a_warning():
    made = make(extra_args=["--brand-new", "1", "--context-shift"])
    assert {("--brand-new", "1"), ("--context-shift",)} <= words(made)
    assert codes(made) == ([], ["extra_args"])


def test_extra_argument_that_repeats_the_profile_is_warned_of():
    made = make(extra_args=["--ctx_size", "5"])
    assert ("--ctx-size", "5") in words(made)
    assert "gives --ctx-size again" in made.warnings[0].message


def test_address_of_the_next_protocol_is_in_brackets_where_it_is_a_web_address():
    assert ("--cors-origins", "http://[::1]:99") in words(make(host="::1", port=99))


def test_format_of_thoughts_that_is_the_default_needs_no_word_where_the_help_does_not_list_it():
    options = "-m, --model F   x\n-c, --ctx-size N   x\n--port P   x\n--reasoning-format FORMAT   one of:\n"
    listed = parse_help(options + " " * 40 + "- none: n\n" + " " * 40 + "- deepseek: d\n")
    made = make(listed, reasoning_format="auto")
    assert "--reasoning-format" not in made.argv
    assert codes(made) == ([], [])


@pytest.mark.parametrize("value", ["1", "true", "on"])
def test_other_words_for_on_are_taken_as_the_servers_take_them(value: str):
    assert ("--fit", value) in words(make(extra_args=["--fit", value]))


def test_negative_value_of_an_extra_argument_is_no_flag():
    assert ("--seed", "-1") in words(make(extra_args=["--seed", "-1"]))


def test_remote_profile_starts_nothing():
    remote = Profile(name="box", engine="remote", url="http://box:1")
    made = command_for(remote, built_in("llama.cpp"), Places())
    assert made.argv == []
    assert "runs elsewhere (http://box:1)" in made.refusals[0].message


def test_script_can_be_run_by_bash_with_every_word_intact(tmp_path: Path):
    odd = {"template_arguments": {"text": 'it\'s $HOME `x` "y" # z'}, "chat_template_file": "/a b/c.jinja"}
    made = make("llama.cpp", **odd)
    script = made.script.replace("llama-server", "printf '%s\\\\0'", 1)
    script = made.script.replace('"${command[@]}"', 'printf "%s\\\\0" "${command[@]}"'.replace("\\\\", "\\"))
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
    assert done.stdout.decode("utf-8").split("\0")[:-1] == made.argv
    assert shlex.split(made.one_line) == made.argv


def test_every_argument_is_on_a_line_of_its_own_with_a_comment():
    lines = make("llama.cpp").script.splitlines()
    assert lines[:2] == ["command=(", "  llama-server"]
    assert all("  # " in line for line in lines[2:-2])
    assert lines[-2:] == [")", '"${command[@]}"']


def test_command_as_json_names_arguments_and_notices():
    table = json.loads(json.dumps(make("bee-0.3", kv_type_k="q8_KV").as_table()))
    assert table["argv"][0] == "llama-server"
    assert table["refusals"][0]["code"] == "kv_type_k"
    assert {"flag": "-np", "value": "1", "comment": "conversations at the same time"} in table["arguments"]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"flash_attention": "on", "kv_type_v": "q8_0"}, "a quantised V cache needs it"),
        ({"flash_attention": "on"}, "attention in one pass, with less memory"),
        ({"flash_attention": "off"}, "attention step by step"),
    ],
)
def test_reason_of_flash_attention_is_the_one_that_there_is(settings: dict[str, Any], reason: str):
    [argument] = [one for one in make(**settings).arguments if one.flag == "--flash-attn"]
    assert argument.comment == reason
