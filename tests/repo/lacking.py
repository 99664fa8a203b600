"""A repository that lacks an object, and names a program by which git would get it when somebody looks."""

import subprocess
from pathlib import Path

WAYS: dict[str, dict[str, str]] = {
    "ssh": {"remote.origin.url": "ssh://x/y", "core.sshCommand": "PROGRAM"},
    "upload-pack": {
        "remote.origin.url": "WORK",
        "remote.origin.uploadpack": "PROGRAM",
        "protocol.file.allow": "always",
    },
    "ext": {"remote.origin.url": "ext::PROGRAM", "protocol.ext.allow": "always"},
}
"""Settings with PROGRAM for a program and WORK for a folder that is a repository."""


def lack(repo: Path, marker: Path, settings: dict[str, str]) -> None:
    """Takes away the ignore file and its object; the program by which git would get it leaves `marker`."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=repo, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    program = repo.parent / "program"
    program.write_text(f"#!/bin/sh\n: > {marker}\n", encoding="utf-8")
    program.chmod(0o755)
    (repo / ".gitignore").write_text("*.lacking\n", encoding="utf-8")
    git("add", ".gitignore")
    blob = git("rev-parse", ":.gitignore")
    git("update-index", "--skip-worktree", ".gitignore")
    (repo / ".gitignore").unlink()
    (repo / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    (repo / "untracked.txt").touch()
    git("config", "core.repositoryformatversion", "1")
    git("config", "extensions.partialClone", "origin")
    for key, value in settings.items():
        git("config", key, value.replace("PROGRAM", str(program)).replace("WORK", str(repo)))
