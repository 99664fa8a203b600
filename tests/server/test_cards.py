"""Model cards: which one is taken, what it adds to a profile, and mistakes in one."""

import tomllib
from pathlib import Path

import pytest

from agent.core.errors import UsageError
from agent.server.cards import Card, card_called, card_for, find_card, list_cards, read_card
from agent.server.profile_files import check_card, load_profile
from agent.server.profile_origins import value_origins, with_origins

SHIPPED = Path(__file__).parents[2] / "server_profiles"
FAMILIES = {
    "Qwen2.5-Coder-32B-Instruct-Q4_K_M.gguf": "qwen2.5-coder",
    "Qwen3-14B-Q4_K_M.gguf": "qwen3",
    "Qwen/Qwen3-8B": "qwen3",
    "Qwen3-Coder-30B-A3B-Instruct-Q4_K_M.gguf": "qwen3-coder",
    "Qwen3-Coder-Next-UD-Q4_K_XL.gguf": "qwen3-coder",
    "Qwen3-Next-80B-A3B-Instruct.gguf": "qwen3.6",
    "Qwen3.5-35B-A3B-Q4_K_M.gguf": "qwen3.6",
    "Qwen_Qwen3.6-27B-Q5_K_S.gguf": "qwen3.6",
    "gemma-4-31B-it-Q4_K_S.gguf": "gemma4",
    "gpt_oss-20b-mxfp4.gguf": "gpt-oss",
    "GLM-4.5-Air-Q4_K_M.gguf": "glm",
    "GLM-4.7-Flash-Q4_K_M.gguf": "glm",
    "mistralai_Devstral-Small-2507-Q4_K_M.gguf": "devstral",
    "SmolLM2-1.7B-Instruct-Q4_K_M.gguf": "smollm2",
}
OWN = """
engine = "llama-server"
port = 8910
[target]
file = "{file}"
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The folder of the person's own profiles."""
    folder = tmp_path / "profiles"
    (folder / "cards").mkdir(parents=True)
    return folder


def folders(own: Path) -> list[Path]:
    return [own, SHIPPED]


@pytest.mark.parametrize(("name", "card"), FAMILIES.items())
def test_family_is_known_by_the_name_of_its_file(name: str, card: str):
    found = card_called([name], [SHIPPED])
    assert found is not None
    assert found.name == card


@pytest.mark.parametrize("name", ["my-model.gguf", "gemma-40b.gguf", "aqwen3-1b.gguf", "qwen30b.gguf", ""])
def test_other_names_lead_to_no_card(name: str):
    assert card_called([name], [SHIPPED]) is None


@pytest.mark.parametrize(
    ("architecture", "card"),
    [("qwen2", "qwen2.5-coder"), ("qwen3moe", "qwen3"), ("qwen35", "qwen3.6"), ("gemma4", "gemma4"),
     ("gpt-oss", "gpt-oss"), ("glm4moe", "glm"), ("llama", "default"), ("", "default")],
)  # fmt: skip
def test_architecture_decides_where_the_name_says_nothing(architecture: str, card: str):
    found = card_for(["model.gguf"], architecture, [SHIPPED])
    assert found is not None
    assert found.name == card


@pytest.mark.parametrize("card", list_cards([SHIPPED]), ids=lambda card: card.name)
def test_shipped_card_is_valid_and_says_where_its_values_are_from(card: Card):
    check_card(card)
    assert card.traps
    text = card.path.read_text("utf-8")
    tables = [key for key in ("sampling", "tools", "model_card") if key in tomllib.loads(text)]
    assert text.count("# ") >= len(tables)
    assert card.name in (Path(__file__).parents[2] / "docs/models.md").read_text("utf-8")


def test_card_fills_in_what_the_profile_leaves_open(own: Path):
    (own / "mine.toml").write_text(OWN.format(file="Qwen3-8B.gguf") + "[sampling]\ntemperature = 0.9\n")
    profile = load_profile("mine", folders(own))
    assert (profile.card, profile.sampling.temperature, profile.sampling.top_k) == ("qwen3", 0.9, 20)


@pytest.mark.parametrize(("key", "top_k"), [('card = "none"\n', None), ('card = "gemma4"\n', 64)])
def test_profile_decides_about_its_card(own: Path, key: str, top_k: int | None):
    (own / "mine.toml").write_text(key + OWN.format(file="Qwen3-8B.gguf"))
    assert load_profile("mine", folders(own)).sampling.top_k == top_k


def test_another_model_file_does_not_inherit_the_card(own: Path):
    (own / "mine.toml").write_text('extends = "qwen3-14b"\n[target]\nfile = "gemma-4-12b.gguf"\n')
    (own / "same.toml").write_text('extends = "qwen3-14b"\ncontext = 4096\n')
    assert load_profile("mine", folders(own)).card == "gemma4"
    assert load_profile("same", folders(own)).card == "qwen3"


def test_template_of_gpt_oss_is_told_the_effort_for_the_reasoning_of_the_profile(own: Path):
    text = OWN.format(file="gpt-oss-20b.gguf")
    (own / "short.toml").write_text('reasoning = "off"\n' + text)
    (own / "open.toml").write_text(text)
    assert load_profile("short", folders(own)).template_arguments == {"reasoning_effort": "low"}
    assert load_profile("open", folders(own)).template_arguments == {}
    assert load_profile("open", folders(own)).model_card.edit_form == "patch"


@pytest.mark.parametrize("engine", ["vllm", "sglang", "remote"])
def test_server_that_is_not_a_llama_server_of_ours_gets_what_a_request_can_tell_it(own: Path, engine: str):
    url = 'url = "http://127.0.0.1:1"\n' if engine == "remote" else ""
    (own / "cards" / "mine.toml").write_text(
        'reasoning = "off"\nreasoning_budget = 9\npreserve_reasoning = true\n[match]\nnames = ["mine"]\n'
        "[template_arguments]\nwhere = 1\n[reasoning_arguments.off]\nreasoning_effort = 'low'\n"
    )
    (own / "mine.toml").write_text(f'engine = "{engine}"\n{url}model = "someone/Mine-27B"\n')
    profile = load_profile("mine", folders(own))
    assert (profile.reasoning, profile.reasoning_budget, profile.preserve_reasoning) == ("off", None, True)
    assert profile.template_arguments == {"where": 1, "reasoning_effort": "low"}


def test_embedded_engine_gets_no_key_that_it_does_not_know(own: Path):
    (own / "cards" / "mine.toml").write_text('reasoning_format = "none"\n[match]\nnames = ["mine"]\n')
    (own / "mine.toml").write_text('[target]\nfile = "mine.gguf"\n')
    assert load_profile("mine", folders(own)).card == "mine"


def test_own_card_replaces_a_shipped_one(own: Path):
    (own / "cards" / "qwen3.toml").write_text("[sampling]\ntemperature = 0.1\n")
    assert find_card("qwen3", folders(own)).values == {"sampling": {"temperature": 0.1}}
    assert load_profile("qwen3-14b", folders(own)).sampling.temperature == 0.1


@pytest.mark.parametrize(
    ("text", "complaint", "hint"),
    [
        ("titel = 1", "unknown key 'titel'", "did you mean 'title'?"),
        ("[match]\nname = []", "unknown key 'match.name'", "did you mean 'names'?"),
        ("[match]\nnames = 'x'", "names must be a list of texts", 'names = ["..."]'),
        ("sampling = 1", "sampling must be a table", "write [sampling]"),
        ("[sampling]\ntop_j = 1", "unknown key 'sampling.top_j'", "did you mean 'top_p'?"),
        ("[sampling]\ntemperature = 9", "sampling.temperature", "docs/profiles.md"),
        ("x = [", "not valid TOML", "correct that line"),
        ("[reasoning_arguments.low]", "unknown key 'reasoning_arguments.low'", "known keys: on, off"),
    ],
)
def test_mistake_in_a_card_names_the_card_and_what_is_wrong(own: Path, text: str, complaint: str, hint: str):
    path = own / "cards" / "bad.toml"
    path.write_text(text)
    (own / "mine.toml").write_text('card = "bad"\n' + OWN.format(file="x.gguf"))
    with pytest.raises(UsageError) as caught:
        load_profile("mine", folders(own))
    assert str(path) in caught.value.message
    assert complaint in caught.value.message
    assert hint in caught.value.hint


def test_unknown_card_is_told_with_the_one_that_may_be_meant(own: Path):
    (own / "mine.toml").write_text('card = "qwen4"\n' + OWN.format(file="x.gguf"))
    with pytest.raises(UsageError, match="unknown model card 'qwen4'") as caught:
        load_profile("mine", folders(own))
    assert "did you mean" in caught.value.hint


def test_file_that_cannot_be_read_is_told(own: Path):
    with pytest.raises(UsageError, match="cannot read the model card"):
        read_card(own / "cards" / "gone.toml")


def test_each_value_is_shown_with_its_origin(own: Path):
    (own / "mine.toml").write_text('extends = "qwen3-14b"\ncontext = 4096\n[sampling]\ntop_k = 7\n')
    origins = value_origins("mine", folders(own))
    assert {key: origins[key] for key in ("context", "sampling.top_k", "sampling.top_p", "port")} == {
        "context": "mine", "sampling.top_k": "mine", "sampling.top_p": "card qwen3", "port": "qwen3-14b",
    }  # fmt: skip
    table = {"context": 4096, "batch": 1, "sampling": {"top_p": 0.95}}
    text = with_origins(table, origins)
    assert "context = 4096 # mine" in text
    assert "batch = 1 # default" in text
    assert "top_p = 0.95 # card qwen3" in text
    assert tomllib.loads(text) == table
