"""What a small model makes of the skills that come with the program.

    python -m benchmarks.skills [--attempts 3] [--profile embedded] [--only review-a-diff,…] [--output PATH]

Each skill is used as a person would, `agent run -p "/NAME …"`, in a small repository of its own, and a
program judges the result (`benchmarks/skill_cases.py`). A server that runs already keeps its start out of the
times. `--output` is written after each run, and the runs that it holds are not made again, which lets an
interrupted benchmark go on.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.skill_cases import CASES, Case, Done, lay_out, need_git

ROOT = Path(__file__).resolve().parents[1]
_SPARE_SECONDS = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One run. `missing` says what its result lacked, "" where it did what the skill is for.

    `seconds` is wall time, `calls` are those that worked.
    """

    skill: str
    missing: str
    exit_code: int
    reason: str
    steps: int
    seconds: float
    answer: str
    calls: Sequence[str]

    @property
    def did_it(self) -> bool:
        return not self.missing


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--attempts", type=int, default=3)
    parser.add_argument("--profile", default="embedded")
    parser.add_argument("--only", default="")
    parser.add_argument("--max-seconds", type=float, default=1800.0)
    parser.add_argument("--max-steps", type=int, default=12)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    need_git()
    wanted = set(filter(None, arguments.only.split(",")))
    cases = [case for case in CASES if not wanted or case.skill in wanted]
    attempts = _known(arguments.output)
    for number in range(arguments.attempts):
        for case in cases:
            if sum(one.skill == case.skill for one in attempts) > number:
                continue
            one = use(case, arguments.profile, arguments.max_seconds, arguments.max_steps)
            attempts.append(one)
            print(f"{number + 1} {case.skill:26} {one.missing or 'done':50} {one.seconds:6.0f} s", flush=True)
            _save(arguments, attempts)
    print(table(attempts))


def use(case: Case, profile: str, max_seconds: float, max_steps: int) -> Attempt:
    """Uses a skill once, in a new repository and with a configuration of its own."""
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        folder = place / "work"
        lay_out(case, folder)
        variables = _variables(case, place)
        command = [sys.executable, "-m", "agent", "run", "-p", f"/{case.skill} {case.asks}".strip()]
        command += ["--profile", profile, "--max-seconds", str(max_seconds), "--max-steps", str(max_steps)]
        command += ["--output", "jsonl", *(word for rule in case.allow for word in ("--allow", rule))]
        before = _state_of(folder)
        started = time.monotonic()
        ran = subprocess.run(
            command,
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=max_seconds + _SPARE_SECONDS,
        )
        seconds = time.monotonic() - started
        events = list(_events(ran.stdout))
        result = events[-1] if events else {}
        done = _done(folder, events, before, variables)
        return Attempt(
            skill=case.skill,
            missing=case.judge(done),
            exit_code=ran.returncode,
            reason=str(result.get("reason") or result.get("error") or ran.stderr.strip()[-200:]),
            steps=int(result.get("steps", 0)),
            seconds=round(seconds, 1),
            answer=done.answer[:2000],
            calls=[f"{tool} {json.dumps(dict(given))[:200]}" for tool, given in done.calls],
        )


def table(attempts: Sequence[Attempt]) -> str:
    """Counts for each skill, with what was missing most."""
    lines = ["| skill | did it | what was missing |", "|---|---|---|"]
    for case in CASES:
        own = [one for one in attempts if one.skill == case.skill]
        if own:
            missing = "; ".join(dict.fromkeys(one.missing for one in own if one.missing))
            lines.append(f"| {case.skill} | {sum(one.did_it for one in own)}/{len(own)} | {missing} |")
    return "\n".join(lines)


def _variables(case: Case, place: Path) -> dict[str, str]:
    """The environment of a run: its configuration is its own, `agent` is this checkout."""
    programs = place / "bin"
    programs.mkdir()
    agent = programs / "agent"
    agent.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m agent "$@"\n', "utf-8")
    agent.chmod(0o755)
    paths = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    own = {"AGENT_CONFIG_HOME": str(place / "config"), "PYTHONPATH": str(ROOT), "PATH": paths}
    return {**os.environ, **own, **case.settings}


def _done(
    folder: Path, events: Sequence[Mapping[str, Any]], before: str, variables: Mapping[str, str]
) -> Done:
    given = {one["call_id"]: one for one in events if one.get("type") == "tool_started"}
    worked = [one for one in events if one.get("type") == "tool_finished" and one.get("outcome") == "ok"]
    after = _state_of(folder)
    return Done(
        folder=folder,
        answer=str(events[-1].get("answer") or "") if events else "",
        calls=[(one["tool"], given[one["call_id"]]["arguments"]) for one in worked],
        diffs=[diff["path"] for one in worked for diff in one.get("diffs", ())],
        touched=[line for line in after.splitlines() if line not in before.splitlines()],
        variables=variables,
    )


def _state_of(folder: Path) -> str:
    command = ["git", "status", "--porcelain=v2", "--branch"]
    commands = (command, ["git", "diff"])
    shown = [subprocess.run(one, cwd=folder, check=True, capture_output=True, text=True) for one in commands]
    return "".join(one.stdout for one in shown)


def _events(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue


def _known(path: Path | None) -> list[Attempt]:
    if path is None or not path.exists():
        return []
    return [Attempt(**one) for one in json.loads(path.read_text("utf-8"))["attempts"]]


def _save(arguments: argparse.Namespace, attempts: Sequence[Attempt]) -> None:
    if arguments.output is None:
        return
    record = {
        "command": f"python -m benchmarks.skills --profile {arguments.profile} "
        f"--max-steps {arguments.max_steps} --max-seconds {arguments.max_seconds:.0f}",
        "date": datetime.date.today().isoformat(),
        "cpus": os.cpu_count(),
        "attempts": [asdict(one) for one in attempts],
    }
    arguments.output.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
