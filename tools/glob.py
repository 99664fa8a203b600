"""Finding files by name."""

from pydantic import BaseModel

from agent.core.tool import Access, ToolContext, ToolResult
from tools._description import description_of
from tools._find.names import name_matcher
from tools._text.encodings import presentable
from tools._text.files import is_folder, require_file
from tools._text.paths import RefusalError, resolve, shown

MAX_NAMES = 100


class GlobParams(BaseModel):
    pattern: str
    path: str | None = None


class GlobTool:
    name = "glob"
    params: type[BaseModel] = GlobParams
    access: Access = "read"

    def __init__(self) -> None:
        self.description = description_of(self.name)

    async def run(self, params: GlobParams, context: ToolContext) -> ToolResult:
        try:
            return await _found(params, context)
        except RefusalError as refusal:
            return ToolResult(str(refusal), is_error=True)


async def _found(params: GlobParams, context: ToolContext) -> ToolResult:
    from tools._find.listing import list_files

    folder = resolve(context, params.path or ".")
    if not is_folder(folder):
        require_file(context.workspace, folder)
        raise RefusalError(f"{shown(context.workspace, folder)} is a file. Give a folder as path.")
    pattern = params.pattern.strip().removeprefix(f"{context.workspace.as_posix()}/")
    try:
        matcher = name_matcher(pattern)
    except ValueError as error:
        raise RefusalError(f"{pattern!r} is no name pattern ({error}). Use one like *.py.") from None
    base = shown(context.workspace, folder)
    prefix = "" if base == "." else f"{base}/"
    listed = await list_files(folder, context.environment)
    names = [prefix + name for name in listed if matcher.fullmatch(name)]
    if not names:
        return ToolResult("no such files")
    text = "\n".join(names[:MAX_NAMES])
    more = len(names) - MAX_NAMES
    note = f"\n({more} more; use a narrower pattern)" if more > 0 else ""
    return ToolResult(presentable(text + note))
