"""Whether everything that is ever sent renders under the chat templates in a folder, by a real llama-server.

    python -m benchmarks.templates FOLDER [--output benchmarks/results/templates.json]

FOLDER has `*.jinja` files, such as `models/templates` of llama.cpp's source. For each of them a llama-server
with a tiny model is started and renders every shape of request (`benchmarks.shapes`). What a template refuses
is sent again in the form that the session would use after that refusal.
"""

import argparse
import datetime
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.llm.failures import Failure
from agent.llm.turns import TurnHabits
from agent.server.loopback import request_json
from benchmarks.shapes import request_shapes
from tests.real.llama_server import serving
from tests.real.tiny_pair import write_target

_SECONDS = 30.0


def render(port: int, body: Mapping[str, Any]) -> str:
    """What the server says against rendering a request, empty if nothing."""
    status, answer = request_json(port, "POST", "/apply-template", "", dict(body), _SECONDS)
    if status == 200 and isinstance(answer, Mapping) and answer.get("prompt"):
        return ""
    error = answer.get("error", {}) if isinstance(answer, Mapping) else {}
    return str(error.get("message", answer))


def refused(port: int, body: Mapping[str, Any]) -> tuple[str, int]:
    """What is left of the refusals after everything that can be learnt from them, and how much was learnt."""
    habits, lessons = TurnHabits(), 0
    while said := render(port, {**body, "messages": habits.arranged(body["messages"])}):
        if not habits.learn(Failure("unacceptable", said, False, said)):
            return said, lessons
        lessons += 1
    return "", lessons


def judge(template: Path, model: Path, folder: Path) -> dict[str, Any]:
    """One template: how many requests rendered, and how many of them only after a lesson."""
    words = ["-m", str(model), "--jinja", "--chat-template-file", str(template), "-c", "4096", "-np", "1"]
    found: dict[str, Any] = {"template": template.name, "rendered": 0, "learnt": 0, "refused": {}}
    try:
        with serving(words, folder) as server:
            able = server.get("/props").get("chat_template_caps", {}).get("supports_tool_calls")
            found["calls"] = "constrained" if able is False else "native"
            for name, body in request_shapes().items():
                if name.startswith("native") and able is False:
                    continue  # a session with such a template binds replies to a schema
                said, lessons = refused(server.port, body)
                if said:
                    found["refused"][name] = " ".join(said.split())[:200]
                    continue
                found["rendered"] += 1
                found["learnt"] += lessons > 0
    except RuntimeError as error:
        found["not served"] = str(error)[-300:]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path, help="write everything to this JSON file")
    options = parser.parse_args()
    shapes = len(request_shapes())
    with tempfile.TemporaryDirectory(prefix="templates-") as scratch:
        model = write_target(Path(scratch) / "tiny.gguf")
        rows = []
        for template in sorted(options.folder.glob("*.jinja")):
            row = judge(template, model, Path(scratch))
            rows.append(row)
            print(f"{row['rendered']:3} of {shapes}, {row['learnt']} learnt  {row['template']}", flush=True)
            for name, said in row["refused"].items():
                print(f"      {name}: {said}")
    whole = sum(bool(row["rendered"]) and not row["refused"] for row in rows)
    print(f"{whole} of {len(rows)} templates render all that they are sent, of {shapes} shapes")
    if options.output:
        date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        result = {"date": date, "shapes": shapes, "templates": len(rows), "whole": whole, "rows": rows}
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
