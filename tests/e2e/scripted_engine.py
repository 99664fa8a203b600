"""Stands in for the engine's process and answers chats from a script: `... SCRIPT.json --spec FILE`.

With drafts as long as `FAILS_WITH_DRAFTS_OF` in its environment it does not come up.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from tests.fakes.script import load_script
from tests.fakes.scripted_server import ScriptedServer
from tests.fakes.state import ServerSettings


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("script", type=Path)
    parser.add_argument("--spec", type=Path, required=True)
    options = parser.parse_args()
    spec = json.loads(options.spec.read_text("utf-8"))
    if str(spec["speculation"]["n_max"]) == os.environ.get("FAILS_WITH_DRAFTS_OF"):
        sys.exit("failed to create_context: drafts of this length do not fit")
    key = Path(spec["key_file"]).read_text("utf-8").strip()
    settings = ServerSettings(api_key=key, n_ctx=spec["context"])
    ScriptedServer(load_script(options.script), settings, spec["port"]).wait()


if __name__ == "__main__":
    main()
