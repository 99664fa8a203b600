"""The share of a conversation that the server still has in its cache after a sub-agent has worked on it.

    python -m benchmarks.subagent_cache [--output benchmarks/results/subagent_cache.json]

One thread, SmolLM2 135M. The figures are counts of tokens by the server's own `cache_n` and `prompt_n`, so
they do not depend on what else the machine does.
"""

import argparse
import asyncio
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent.resources import data_folder
from agent.server.profile_files import load_profile
from benchmarks.delegated_conversation import delegate_once
from tests.real import llama_server
from tests.real.rig import ROOT, serving

PROFILE = "embedded-small"
CONTEXT = 4096
LEAST_SHARE = 0.95


@contextmanager
def embedded(**changes: Any) -> Iterator[tuple[str, str]]:
    """The address and key of the embedded engine."""
    with tempfile.TemporaryDirectory() as folder, serving(PROFILE, Path(folder), **changes) as endpoint:
        yield endpoint.base_url, endpoint.api_key


@contextmanager
def binary(*words: str) -> Iterator[tuple[str, str]]:
    """The same of the installed llama-server."""
    file = load_profile(PROFILE, [ROOT / "server_profiles"]).model_files[0]
    model = file.path_in(data_folder() / "models")
    all_words = ["-m", str(model), "-c", str(CONTEXT), "--jinja", *words]
    with tempfile.TemporaryDirectory() as folder, llama_server.serving(all_words, Path(folder)) as up:
        yield f"http://127.0.0.1:{up.port}", ""


SERVERS = {
    "embedded engine, one slot, 128 MiB for prompts": embedded,
    "embedded engine, two slots of one memory, none for prompts": lambda: embedded(
        slots=2, unified_kv=True, context=CONTEXT // 2, cache_ram_mib=0
    ),
    "llama-server, one slot, 128 MiB for prompts": lambda: binary("-np", "1", "--cache-ram", "128"),
    "llama-server, two slots of one memory, none for prompts": lambda: binary(
        "-np", "2", "--kv-unified", "--cache-ram", "0"
    ),
    "llama-server, one slot, nothing for prompts": lambda: binary("-np", "1", "--cache-ram", "0"),
}
KEEP_NOTHING = "llama-server, one slot, nothing for prompts"
"""What sub-agents are not offered on, to see what they would cost there."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    rows: dict[str, dict[str, float]] = {}
    for name, server in SERVERS.items():
        with server() as (url, key):
            found = asyncio.run(delegate_once(url, key, CONTEXT))
        rows[name] = {
            "prompt_tokens": found.prompt,
            "cached_tokens": found.after.cached_tokens,
            "evaluated_tokens": found.after.prompt_tokens,
            "share_kept": round(found.share_kept, 4),
            "subagent_steps": found.subagent_steps,
            "subagent_tokens": found.subagent_tokens,
        }
        print(f"{name}: {found.share_kept:.1%} ({found.after.cached_tokens} of {found.prompt})", flush=True)
        if options.output:
            options.output.write_text(json.dumps(rows, indent=2) + "\n", "utf-8")
    missed = [name for name, row in rows.items() if row["share_kept"] < LEAST_SHARE and name != KEEP_NOTHING]
    if missed:
        raise SystemExit(f"less than {LEAST_SHARE:.0%}: {', '.join(missed)}")


if __name__ == "__main__":
    main()
