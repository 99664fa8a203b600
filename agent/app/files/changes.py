"""What a run changed in the repository, and its commit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.app.files.authorship import Authorship
from agent.core.errors import AgentError, UsageError
from agent.core.events import Notice
from agent.repo.git import RepoState, changed_since, commit_paths, create_branch, require_ready
from agent.resources import state_folder

_LONGEST_SUBJECT = 72
_SHORTEST_SUBJECT = 30
_MARKDOWN = "#*`>- \t"


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes since `before`, the state of the repository before the first change could be made."""

    workspace: Path
    before: RepoState
    authorship: Authorship

    async def find(self) -> list[Path]:
        """Absolute paths of what the run changed, and not somebody else in the meantime."""
        everything = await changed_since(self.before, self.authorship.ledger.changed_files())
        # Whose state folder lies in the workspace does not want the record of the run in its commit.
        ours = state_folder().resolve()
        return self.authorship.of_the_run(path for path in everything if not path.is_relative_to(ours))

    async def commit(
        self, changed: Sequence[Path], message: str, emit: Callable[[Notice], None]
    ) -> str | None:
        """Commits `changed`, as far as nobody else's work is in it; the id of the commit if there is one.

        Raises:
            AgentError: git refused.
        """
        foreign = self.authorship.ledger.foreign_files()
        result = await commit_paths(self.workspace, changed, message, self.before, dirty_before=foreign)
        for path, reason in result.skipped:
            emit(Notice(text=f"not committed: {path}: {reason}", level="warning"))
        if result.note:
            emit(Notice(text=result.note))
        if result.commit:
            emit(Notice(text=f"committed {result.commit[:10]}"))
        return result.commit

    def names(self, changed: Sequence[Path]) -> list[str]:
        """Paths as a person in the workspace would write them."""
        return [
            path.relative_to(self.workspace).as_posix() if path.is_relative_to(self.workspace) else str(path)
            for path in changed
        ]


async def require_git(workspace: Path, branch: str | None, *, commit: bool) -> None:
    """Makes sure that a branch and a commit will be possible. Raises UsageError."""
    try:
        await require_ready(workspace, branch=branch, commit=commit)
    except UsageError as error:
        hint = error.hint or "leave out --branch and --commit, which need a git repository"
        raise UsageError(error.message, hint) from error


async def start_branch(workspace: Path, branch: str) -> None:
    """Raises UsageError or AgentError, with a hint."""
    try:
        await create_branch(workspace, branch)
    except UsageError:
        raise
    except AgentError as error:
        raise AgentError(error.message, "check the permissions of the repository's .git folder") from error


def commit_message(answer: str, task: str) -> str:
    """The model's closing words as a commit message: a first line of fitting length, then the rest."""
    text = answer.strip() or task.strip()
    first, _, rest = text.partition("\n")
    first = first.strip(_MARKDOWN) or first
    if len(first) > _LONGEST_SUBJECT:
        cut = first.rfind(" ", 0, _LONGEST_SUBJECT - 2)
        cut = cut if cut > _SHORTEST_SUBJECT else _LONGEST_SUBJECT - 2
        first, rest = f"{first[:cut]} …", f"… {first[cut:].strip()}\n{rest}"
    return f"{first}\n\n{rest.strip()}".strip() + "\n"
