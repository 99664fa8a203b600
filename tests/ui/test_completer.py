"""The menu of files in a repository whose listing takes long."""

import asyncio

from agent.ui.completer import Completer
from agent.ui.entry.completion import Completable
from agent.ui.widgets.menu import Menu


class ShownMenu(Menu):
    """Notes what it is opened with."""

    def __init__(self) -> None:
        super().__init__()
        self.labels: list[str] = []

    def open(self, choices, target) -> None:
        self.labels = [choice.label for choice in choices]


class SlowRepository:
    """Lists its files when it is let go."""

    def __init__(self) -> None:
        self.begun = 0
        self.go = asyncio.Event()

    async def files(self) -> list[str]:
        self.begun += 1
        await self.go.wait()
        return ["src/app.py", "src/other.py"]


async def no_commands() -> list:
    return []


async def test_keys_while_the_files_are_listed_neither_stop_nor_repeat_the_listing():
    menu, repository = ShownMenu(), SlowRepository()
    completer = Completer(menu, repository.files, no_commands, lambda _: True, lambda: 0.0)
    for query in ("", "a", "ap"):
        earlier = asyncio.create_task(completer.complete(Completable("file", query, len(query) + 1)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        earlier.cancel()
        await asyncio.gather(earlier, return_exceptions=True)
    last = asyncio.create_task(completer.complete(Completable("file", "app", 4)))
    await asyncio.sleep(0)
    repository.go.set()
    await last
    assert repository.begun == 1
    assert menu.labels == ["src/app.py"]


async def test_a_listing_that_is_old_is_made_anew_behind_what_is_shown():
    menu, repository, now = ShownMenu(), SlowRepository(), [0.0]
    repository.go.set()
    completer = Completer(menu, repository.files, no_commands, lambda _: True, lambda: now[0])
    await completer.complete(Completable("file", "app", 4))
    now[0] = 60.0
    await completer.complete(Completable("file", "app", 4))
    assert repository.begun == 2
    assert menu.labels == ["src/app.py"]
