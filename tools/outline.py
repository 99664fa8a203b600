"""A map of the sources: which files matter, and what they define."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel

from agent.core.tool import Access, ToolContext, ToolResult
from tools._description import description_of
from tools._text.encodings import presentable
from tools._text.files import is_folder, require_file
from tools._text.paths import RefusalError, reason, resolve, shown

if TYPE_CHECKING:
    from tools._outline.atlas import Atlas
    from tools._outline.index import Index
    from tools._outline.rank import Ranking

LEAST_TOKENS, MOST_TOKENS = 100, 4000


class OutlineParams(BaseModel):
    about: str = ""
    path: str = "."
    tokens: int = 1000


class OutlineTool:
    name = "outline"
    params: type[BaseModel] = OutlineParams
    access: Access = "read"

    def __init__(self) -> None:
        self.description = description_of(self.name)
        self._atlas: Atlas | None = None

    async def run(self, params: OutlineParams, context: ToolContext) -> ToolResult:
        try:
            return await _outline(params, context, self._atlas_of(context))
        except RefusalError as refusal:
            return ToolResult(presentable(str(refusal)), is_error=True)
        except OSError as error:
            return ToolResult(f"The outline could not be made: {reason(error)}.", is_error=True)

    def _atlas_of(self, context: ToolContext) -> "Atlas":
        """The map of this session; another one where the same tool is used in another folder."""
        from tools._outline.atlas import Atlas

        atlas = self._atlas
        if atlas is None or (atlas.workspace, atlas.cache) != (context.workspace, context.cache_folder):
            atlas = self._atlas = Atlas(context.workspace, context.cache_folder)
        return atlas


async def _outline(params: OutlineParams, context: ToolContext, atlas: "Atlas") -> ToolResult:
    import asyncio

    names, part, one_file = await _names(params.path or ".", context)
    index = await atlas.look(names, context.environment)
    budget = min(MOST_TOKENS, max(LEAST_TOKENS, params.tokens))
    if one_file:
        text = _of_one_file(index, part, budget)
    else:
        ranking = await atlas.ranking(index, part)
        text = await asyncio.to_thread(_text, index, ranking, params.about, budget)
    if index.missing:
        text += f"\n({index.missing} files are not read yet; the next call goes on)"
    return ToolResult(presentable(text))


async def _names(given: str, context: ToolContext) -> tuple[list[str], str, bool]:
    """The sources that are meant, from the workspace; what was named; and whether that is a single file."""
    from tools._find.listing import list_files
    from tools._outline.languages import ENDINGS, language_of

    path = resolve(context, given)
    base = shown(context.workspace, path)
    if not is_folder(path):
        require_file(context.workspace, path)
        if language_of(path.name) is None:
            raise RefusalError(f"There is no outline of {base}, only of {' '.join(ENDINGS)} files. Read it.")
        return [base], base, True
    prefix = "" if base == "." else f"{base}/"
    listed = await list_files(path, context.environment)
    sources = [prefix + name for name in listed if language_of(name)]
    names = [name for name in sources if context.may_read(context.workspace / name)]
    if sources and not names:
        raise RefusalError(f"None of the sources in {base} may be read (permissions).")
    if not names:
        raise RefusalError(f"There are no {' '.join(ENDINGS)} files in {base}. Use glob and search.")
    # What is near the top comes first, where not everything can be read.
    return sorted(names, key=lambda name: (name.count("/"), name)), base, False


def _of_one_file(index: "Index", name: str, budget: int) -> str:
    from tools._outline.render import whole

    source = index.sources.get(name)
    return whole(name, source, budget) if source and source.names else f"{name} defines nothing"


def _text(index: "Index", ranking: "Ranking", about: str, budget: int) -> str:
    from tools._outline.rank import matches, share_of, terms_of
    from tools._outline.render import ranked

    sources = index.sources
    terms = terms_of(about)
    fits = matches(sources, terms)
    note = "" if fits or not terms else f"nothing fits {about!r}; the files that matter most:\n"

    def weight(name: str) -> float:
        importance = ranking.files.get(name, 0.0) * len(sources)
        weighed = fits[name] * (1 + min(importance, 10.0) / 10) if fits else importance
        return weighed * share_of(name, terms)

    wanted: Sequence[str] = [name for name in (fits or sources) if sources[name].names]
    if not wanted:
        return "no definitions were found"
    ordered = sorted(wanted, key=lambda name: (-weight(name), name))
    return note + ranked(ordered, sources, ranking, terms, budget)
