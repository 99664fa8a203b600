"""Which tools fit a few words best. Plain counting: no model is asked and nothing is loaded."""

import re
from collections.abc import Sequence

from agent.mcp.adapter import OfferedTool

_WORD = re.compile(r"[a-z0-9]+")
_IN_NAME, _IN_DESCRIPTION, _BEGINNING = 4.0, 1.0, 0.5


def best_matches(query: str, tools: Sequence[OfferedTool], count: int) -> list[OfferedTool]:
    """At most `count` tools, the best first; of equal ones the earlier. Nothing where no word fits.

    An empty query, or the exact name of a tool, gives the first tools or that one.
    """
    exact = [tool for tool in tools if query.strip() in (tool.name, tool.remote.name)]
    if exact:
        return exact[:count]
    words = list(dict.fromkeys(_words(query)))
    if not words:
        return list(tools[:count])
    scored = [(_score(words, tool), -index, tool) for index, tool in enumerate(tools)]
    fitting = sorted((item for item in scored if item[0] > 0), key=lambda item: item[:2], reverse=True)
    return [tool for _, _, tool in fitting[:count]]


def _score(words: Sequence[str], tool: OfferedTool) -> float:
    name, description = set(_words(tool.name)), set(_words(tool.description))
    score = 0.0
    for word in words:
        if word in name:
            score += _IN_NAME
        elif len(word) > 2 and any(
            other.startswith(word) or word.startswith(other) for other in name if len(other) > 2
        ):
            score += _IN_NAME * _BEGINNING
        if word in description:
            score += _IN_DESCRIPTION
        elif len(word) > 3 and any(other.startswith(word) for other in description):
            score += _IN_DESCRIPTION * _BEGINNING
    return score


def _words(text: str) -> list[str]:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return _WORD.findall(spaced.lower())
