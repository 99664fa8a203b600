import json

import pytest

from agent.core.guide import Offer
from agent.llm.blocks import block_grammar, parse_block
from agent.llm.toolcalls import MalformedCallError


def block(path: str, body: str, fence: str = "```", language: str = "python") -> str:
    return json.dumps({"tool": "write", "path": path}) + f"\n{fence}{language}\n{body}{fence}"


@pytest.mark.parametrize(
    "body",
    ["x = 1\n", "", "\n\n", 'text = "a\\nb"\n', "def f():\n    '''\n    ```\n    '''\n", "über = '漢字'\n"],
)
def test_the_file_is_what_stands_between_the_fences(body: str) -> None:
    call = parse_block(block("a.py", body), "call-1")
    assert call is not None
    assert (call.name, call.arguments) == ("write", {"path": "a.py", "content": body})
    assert call.in_text


def test_a_reply_without_a_block_is_left_to_others() -> None:
    assert parse_block('{"tool": "finish", "answer": "done"}', "call-1") is None
    assert parse_block("", "call-1") is None


def test_a_block_that_was_cut_is_no_call() -> None:
    assert parse_block(block("a.py", "x = 1\n").removesuffix("```"), "call-1") is None


def test_markdown_may_hold_code_between_longer_fences() -> None:
    body = "# Title\n\n```sh\nmake\n```\n"
    call = parse_block(block("README.md", body, fence="````", language=""), "call-1")
    assert call is not None
    assert call.arguments["content"] == body


@pytest.mark.parametrize("head", ['{"tool": "read", "path": "a.py"}', '{"tool": "write"}', "{not json}"])
def test_a_block_behind_anything_but_a_write_call_is_refused(head: str) -> None:
    with pytest.raises(MalformedCallError):
        parse_block(f"{head}\n```\nx\n```", "call-1")


def test_the_grammar_names_every_file_and_tool_of_the_offer_and_no_other() -> None:
    offer = Offer(
        tools=frozenset({"write", "read", "finish"}), paths={"read": ("c.md",)}, blocks=("a.py", "d/b.md")
    )
    root = block_grammar(offer).splitlines()[0]
    assert root.count(" | ") == 3
    assert r'"{\"tool\": \"write\", \"path\": \"a.py\"}\n```python\n" line+ "```"' in root
    assert r'"{\"tool\": \"write\", \"path\": \"d/b.md\"}\n````\n" mdline+ "````"' in root
    assert r'"{\"tool\": \"read\", \"path\": \"c.md\"}"' in root
    assert r'"{\"tool\": \"finish\", \"answer\": " text "}"' in root


def test_the_grammar_leaves_out_what_is_not_offered() -> None:
    grammar = block_grammar(Offer(tools=frozenset({"write"}), paths={"read": ("c.md",)}, blocks=("a.py",)))
    assert "read" not in grammar
    assert "finish" not in grammar


def test_a_path_with_quotes_cannot_break_out_of_the_grammar() -> None:
    grammar = block_grammar(Offer(tools=frozenset({"write"}), blocks=('a"\nroot ::= "x.py',)))
    assert grammar.splitlines()[1].startswith("line ::=")
