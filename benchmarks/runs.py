"""Running `agent run` on a fresh copy of a folder, as the task benchmarks do."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class RunResult:
    """One run. `seconds` is wall time; rates are the server's own."""

    task: str
    solved: bool
    exit_code: int
    reason: str
    steps: int
    seconds: float
    decode_tokens_per_second: float | None
    acceptance_rate: float | None
    cached_share: float | None


def run_task(folder: Path, task_file: str, profile: str, max_seconds: float) -> RunResult:
    """Copies `folder` into a new git repository, does the task there and checks the result once more."""
    with tempfile.TemporaryDirectory() as temporary:
        workspace = Path(temporary) / folder.name
        shutil.copytree(folder, workspace, ignore=shutil.ignore_patterns("__pycache__", ".git"))
        task = Path(temporary) / "task.md"
        shutil.move(workspace / task_file, task)
        _git(workspace, "init", "-q")
        _git(workspace, "add", "-A")
        _git(workspace, "-c", "user.name=b", "-c", "user.email=b@localhost", "commit", "-qm", "start")
        started = time.monotonic()
        command = [sys.executable, "-m", "agent", "run", str(task), "--profile", profile, "--output", "json"]
        command += ["--max-seconds", str(max_seconds)]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        done = subprocess.run(
            command, cwd=workspace, env=environment, capture_output=True, text=True, check=False
        )
        seconds = time.monotonic() - started
        record = _last_object(done.stdout)
        stats = record.get("stats", {})
        return RunResult(
            task=folder.name,
            solved=done.returncode == 0 and _check_passes(task, workspace),
            exit_code=done.returncode,
            reason=str(record.get("reason", done.stderr.strip()[-200:])),
            steps=int(record.get("steps", 0)),
            seconds=round(seconds, 1),
            decode_tokens_per_second=stats.get("decode_tokens_per_second"),
            acceptance_rate=stats.get("acceptance_rate"),
            cached_share=stats.get("cached_share"),
        )


def _check_passes(task: Path, workspace: Path) -> bool:
    """The judge is not the agent: the check of the task is run here again."""
    sys.path.insert(0, str(REPOSITORY))
    from agent.headless.task import read_task_file

    check = read_task_file(task).check
    if check is None:
        return True
    return subprocess.run(check, shell=True, cwd=workspace, capture_output=True, check=False).returncode == 0


def _git(workspace: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=workspace, check=True, capture_output=True)


def _last_object(text: str) -> dict[str, Any]:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return {}


def save(name: str, record: dict[str, object], runs: list[RunResult]) -> Path:
    """Writes one result file into benchmarks/results."""
    folder = REPOSITORY / "benchmarks" / "results"
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.json"
    content = {**record, "runs": [asdict(run) for run in runs]}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path
