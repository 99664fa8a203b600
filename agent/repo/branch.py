"""Which branch a folder is on, by one question to git: the state of all files costs far more."""

import os
from collections.abc import Mapping
from pathlib import Path

from agent.repo.git_process import ask
from agent.repo.state import SHORT_COMMIT


def branch_of(folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """The branch, or the beginning of the commit where the head is detached; empty where git cannot tell.

    Waits for a git process, or two, and for two seconds at most.
    """
    for question in (
        ["symbolic-ref", "--quiet", "--short", "HEAD"],
        ["rev-parse", "--quiet", "--verify", "HEAD"],
    ):
        answer = ask(folder, question, environment=environment, seconds=1.0)
        if answer.code == 0:
            name = os.fsdecode(answer.output).strip()
            return name if question[0] == "symbolic-ref" else name[:SHORT_COMMIT]
    return ""
