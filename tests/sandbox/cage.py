"""Runs command lines in a sandbox of a given kind, as this user or as nobody."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agent.core.hosts import HostList
from agent.sandbox.commands import Sandbox
from agent.sandbox.policy import Wishes
from agent.sandbox.probed import Probed
from agent.sandbox.proxy import Verdict

NOBODY = 65534


@dataclass(frozen=True)
class Ended:
    code: int
    output: str


@dataclass
class Cage:
    """`outside` and `home` can be seen from inside, so that what fails fails because it is not allowed."""

    found: Probed
    workspace: Path
    outside: Path
    home: Path
    network: bool = False
    writable: tuple[Path, ...] = ()
    hosts: tuple[str, ...] = ()
    verdicts: list[Verdict] = field(default_factory=list)
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def sandbox(self) -> Sandbox:
        return Sandbox(
            wishes=Wishes(
                workspace=self.workspace,
                homes=(self.home,),
                environment=self.environment,
                writable=self.writable,
                readable=(self.outside, self.home),
            ),
            demand="required",
            network=lambda: self.network,
            hosts=HostList(self.hosts),
            told=self.verdicts.append,
            find=lambda: self.found,
        )

    def run(self, command: str, *, stdin: int = subprocess.DEVNULL, folder: Path | None = None) -> Ended:
        """Runs a line in bash; all of its output together."""
        return self.start(("bash", "-c", command), stdin=stdin, folder=folder)

    def python(self, code: str, *, stdin: int = subprocess.DEVNULL) -> Ended:
        return self.start((os.path.realpath(sys.executable), "-I", "-c", code), stdin=stdin)

    def start(
        self, arguments: tuple[str, ...], *, stdin: int = subprocess.DEVNULL, folder: Path | None = None
    ) -> Ended:
        sandbox = self.sandbox()
        try:
            wrapped = list(asyncio.run(sandbox.confined(arguments)))
            done = subprocess.run(
                wrapped,
                cwd=folder or self.workspace,
                env={**self.environment, "HOME": str(self.home)},
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                timeout=30,
                check=False,
            )
        finally:
            sandbox.close()
        return Ended(done.returncode, done.stdout.decode("utf-8", "replace"))


MakeCage = Callable[..., Cage]
