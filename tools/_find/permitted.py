"""Which files of a folder a tool may read, where the call names only the folder."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_COUNTED_AT_MOST = 5_000


@dataclass(slots=True)
class Permitted:
    """`accepts` is asked for names below `folder`, each is judged once. `only` is a file that was named."""

    folder: Path
    wanted: Callable[[str], bool]
    may_read: Callable[[Path], bool]
    only: str | None = None
    _judged: dict[str, bool] = field(default_factory=dict)

    def accepts(self, name: str) -> bool:
        return self.wanted(name) and self._may_read(name)

    async def note(self, environment: Mapping[str, str]) -> str:
        """One line that counts the files left out, empty if there are none.

        It counts what is there, not what fits a pattern, or it would tell what is in them.
        """
        if self.only is not None:
            return ""
        from tools._find.listing import list_files

        listed = await list_files(self.folder, environment)
        names = [name for name in listed if self.wanted(name)][:_COUNTED_AT_MOST]
        count = sum(not self._may_read(name) for name in names)
        if not count:
            return ""
        more = " or more" if len(names) == _COUNTED_AT_MOST else ""
        return f"\n({count}{more} file{'s' if count > 1 or more else ''} left out (permissions))"

    def _may_read(self, name: str) -> bool:
        if name not in self._judged:
            self._judged[name] = self.may_read(self.folder / name)
        return self._judged[name]
