"""The map that a session goes on with: read and weighed once, then only what changed."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools._outline.index import Index, build_index
from tools._outline.kept import load_ranking, ranking_file, save_ranking
from tools._outline.rank import Ranking, rank
from tools._outline.sources import Source

_MOST_RANKINGS = 8


class Atlas:
    """What is known of the sources of one workspace. `cache` is the folder for the next session, or None."""

    def __init__(self, workspace: Path, cache: Path | None) -> None:
        self.workspace, self.cache = workspace, cache
        self._known: dict[str, Source] | None = None
        self._rankings: dict[str, Ranking] = {}

    async def look(self, names: Sequence[str], environment: Mapping[str, str]) -> Index:
        """The sources called `names`, as they are now; see `build_index`.

        Raises:
            OSError: the reader cannot be started.
        """
        index = await build_index(self.workspace, names, environment, self.cache, known=self._known)
        self._known = {**(self._known or {}), **index.sources}
        return index

    async def ranking(self, index: Index, part: str) -> Ranking:
        """The weights of the files in `part`, a folder; kept as long as hardly any of them changes."""
        file = ranking_file(self.cache, self.workspace) if self.cache and part == "." else None
        known = self._rankings.get(part)
        if known is None and file:
            known = await asyncio.to_thread(load_ranking, file)
        if known is None or not known.still_holds(index.sources):
            known = await asyncio.to_thread(rank, index.sources)
            if file and not index.missing:
                await asyncio.to_thread(save_ranking, file, known)
        if len(self._rankings) >= _MOST_RANKINGS:
            self._rankings.clear()
        self._rankings[part] = known
        return known
