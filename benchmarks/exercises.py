"""Small exercises: one direct prompt against `agent run`, with the same model and the same server.

    python benchmarks/exercises.py --track PATH [--names leap,isogram,…] [--profile embedded]

PATH is a checkout of the Python track of Exercism; its exercises are not part of this project. The direct
prompt gives instructions, tests and stub and asks for the complete file, the answer's code block is what is
tested. `agent run` gets a task file that names the same files, and the tests as its check.
"""

import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path

from runs import REPOSITORY, RunResult, run_task, save

NAMES = "leap,isogram,hamming,raindrops,acronym,anagram,matching-brackets,series"
_TEST_SECONDS = 60


@dataclass(frozen=True)
class DirectResult:
    task: str
    solved: bool
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--track", type=Path, required=True)
    parser.add_argument("--names", default=NAMES)
    parser.add_argument("--profile", default="embedded")
    parser.add_argument("--max-seconds", type=float, default=600.0)
    arguments = parser.parse_args()
    direct: list[DirectResult] = []
    runs: list[RunResult] = []
    for name in arguments.names.split(","):
        exercise = Exercise(arguments.track / "exercises" / "practice" / name)
        with tempfile.TemporaryDirectory() as temporary:
            folder = exercise.lay_out(Path(temporary) / name)
            runs.append(run_task(folder, "task.md", arguments.profile, arguments.max_seconds))
        # The agent's run has started the server that the direct prompt goes to.
        direct.append(ask_directly(exercise, arguments.profile))
        print(
            f"{name:22} direct {'solved' if direct[-1].solved else 'failed':7} {direct[-1].seconds:6.1f} s   "
            f"agent {'solved' if runs[-1].solved else runs[-1].reason:13} {runs[-1].seconds:6.1f} s",
            flush=True,
        )
        about = {
            "command": f"python benchmarks/exercises.py --track PATH --names {arguments.names}",
            "date": datetime.date.today().isoformat(),
            "cpus": os.cpu_count(),
            "direct": [asdict(result) for result in direct],
        }
        save("exercises", about, runs)
    print(
        f"direct {sum(one.solved for one in direct)}/{len(direct)}, "
        f"agent {sum(run.solved for run in runs)}/{len(runs)}"
    )


class Exercise:
    """The parts of one exercise."""

    def __init__(self, folder: Path) -> None:
        stem = folder.name.replace("-", "_")
        self.name = folder.name
        self.stub_name, self.test_name = f"{stem}.py", f"{stem}_test.py"
        self.stub = (folder / self.stub_name).read_text("utf-8")
        self.tests = (folder / self.test_name).read_text("utf-8")
        documents = [
            folder / ".docs" / f"{part}.md"
            for part in ("introduction", "instructions", "instructions.append")
        ]
        self.instructions = "\n".join(path.read_text("utf-8") for path in documents if path.exists())

    def lay_out(self, folder: Path) -> Path:
        folder.mkdir(parents=True)
        (folder / self.stub_name).write_text(self.stub, "utf-8")
        (folder / self.test_name).write_text(self.tests, "utf-8")
        task = (
            f"---\ncheck: python3 -m pytest -q -x {self.test_name}\n---\n{self.instructions}\n"
            f"Implement this in {self.stub_name} so that the tests in {self.test_name} pass.\n"
        )
        (folder / "task.md").write_text(task, "utf-8")
        return folder

    @property
    def prompt(self) -> str:
        return (
            f"{self.instructions}\n\n{self.test_name}:\n```python\n{self.tests}```\n\n"
            f"{self.stub_name}:\n```python\n{self.stub}```\n\n"
            f"Write the complete file {self.stub_name} so that the tests pass, in one Python code block."
        )


def ask_directly(exercise: Exercise, profile: str) -> DirectResult:
    started = time.monotonic()
    answer = _complete(profile, exercise.prompt)
    seconds = time.monotonic() - started
    found = re.search(r"```(?:python)?\n(.*?)```", answer, re.DOTALL)
    with tempfile.TemporaryDirectory() as temporary:
        folder = exercise.lay_out(Path(temporary) / exercise.name)
        (folder / exercise.stub_name).write_text(found[1] if found else answer, "utf-8")
        solved = _tests_pass(folder, exercise.test_name)
    return DirectResult(exercise.name, solved, round(seconds, 1))


def _tests_pass(folder: Path, test_name: str) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "-x", test_name]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=_TEST_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _complete(profile: str, prompt: str) -> str:
    """One greedy completion by the server that runs for `profile`."""
    sys.path.insert(0, str(REPOSITORY))
    from agent.app.servers.serving import choose
    from agent.config.load import load_settings

    endpoint = choose(load_settings(None, os.environ, {"profile": profile})).running()
    if endpoint is None:
        raise SystemExit(f"no server runs for {profile}: agent server start {profile}")
    body = {"messages": [{"role": "user", "content": prompt}], "max_tokens": 1500, "temperature": 0}
    request = urllib.request.Request(
        f"{endpoint.base_url}/v1/chat/completions",
        json.dumps(body).encode("utf-8"),
        {"Content-Type": "application/json", "Authorization": f"Bearer {endpoint.api_key}"},
    )
    with urllib.request.urlopen(request, timeout=600) as response:
        return json.load(response)["choices"][0]["message"]["content"]


if __name__ == "__main__":
    if shutil.which("git") is None:
        raise SystemExit("git is needed")
    main()
