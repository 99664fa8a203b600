"""Files as blocks of text behind a call, and the grammar that binds a reply to them.

A reply is one of
    {"tool": "write", "path": "a.py"}      followed by the file between two lines of backticks
    {"tool": "read", "path": "a.py"}
    {"tool": "finish", "answer": "…"}
The grammar is llama.cpp's GBNF, sent as `grammar`. Nothing of it is part of the prompt.
"""

import json
import re
from collections.abc import Sequence

from agent.core.guide import Offer
from agent.core.messages import ToolCall
from agent.llm.toolcalls import MalformedCallError

_LANGUAGES = {
    ".c": "c",
    ".css": "css",
    ".go": "go",
    ".html": "html",
    ".java": "java",
    ".js": "javascript",
    ".json": "json",
    ".py": "python",
    ".rs": "rust",
    ".sh": "bash",
    ".toml": "toml",
    ".ts": "typescript",
    ".yaml": "yaml",
    ".yml": "yaml",
}
_MARKDOWN = (".md", ".markdown", ".rst")
_BLOCK = re.compile(
    r"(?P<call>\{.*?\})\n(?P<fence>`{3,})\w*\n(?P<body>.*)^(?P=fence)\s*\Z", re.DOTALL | re.MULTILINE
)

# A line of a file must not begin with a backtick, so that the fence behind the file is the end of it. In
# Markdown it may, and the fence has four.
_LINE = r'line ::= ([^`\n] [^\n]*)? "\n"'
_MARKDOWN_LINE = r'mdline ::= ("`" | "``" | "```")? ([^`\n] [^\n]*)? "\n"'
_OPEN_FINISH = '{"tool": "finish", "answer": '
_TEXT = r'text ::= "\"" ([^"\\\n] | "\\" ["\\/bfnrt])* "\""'


def block_grammar(offer: Offer) -> str:
    """The grammar for an offer with `blocks`."""
    forms = [_block_rule(path) for path in offer.blocks]
    tools = offer.tools or frozenset()
    forms += [_literal(json.dumps({"tool": "read", "path": path})) for path in _readable(offer, tools)]
    if "finish" in tools:
        forms.append(rf'{_literal(_OPEN_FINISH)} text "}}"')
    return "\n".join([f"root ::= {' | '.join(forms)}", _LINE, _MARKDOWN_LINE, _TEXT]) + "\n"


def parse_block(text: str, call_id: str) -> ToolCall | None:
    """The `write` call of a reply with a block; None where there is no block.

    Raises MalformedCallError when the call before the block is none.
    """
    found = _BLOCK.match(text.strip() + "\n")
    if found is None:
        return None
    try:
        call = json.loads(found["call"])
    except json.JSONDecodeError:
        raise MalformedCallError("The line before the block is no call. Nothing was written.") from None
    if not isinstance(call, dict) or call.get("tool") != "write" or not isinstance(call.get("path"), str):
        raise MalformedCallError("A block has to follow a write call. Nothing was written.")
    arguments = {"path": call["path"], "content": found["body"]}
    return ToolCall(call_id, "write", arguments, text, in_text=True)


def _readable(offer: Offer, tools: frozenset[str]) -> Sequence[str]:
    return offer.paths.get("read", ()) if "read" in tools else ()


def _block_rule(path: str) -> str:
    suffix = path[path.rfind(".") :] if "." in path else ""
    markdown = suffix in _MARKDOWN
    fence = "````" if markdown else "```"
    line = "mdline" if markdown else "line"
    head = json.dumps({"tool": "write", "path": path}) + f"\n{fence}{_LANGUAGES.get(suffix, '')}\n"
    return f"{_literal(head)} {line}+ {_literal(fence)}"


def _literal(text: str) -> str:
    """`text` as a GBNF string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
