"""How long the questions of `agent doctor --live` take a server that runs already, and what they show.

    python -m benchmarks.doctor_time [--profile embedded] [--output benchmarks/results/doctor_time.json]

One thread. Told are the seconds that passed, and the processor time of the server, which is what the
questions take on an idle machine. They are not broken off here, as the command does after 55 s.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from agent.app.doctor.live import PATIENCE_SECONDS, Live
from agent.app.servers.serving import choose
from agent.bench.baseline import Baseline
from agent.config.load import load_settings
from agent.server.record import Endpoint
from tests.real.rig import serving

_NEVER = 3600.0
_LEAST_RATE = 0.01
"""So slow a baseline that the speed is compared, and the short measurement of slow models is the one made."""


async def findings(endpoint: Endpoint) -> dict[str, str]:
    baseline = Baseline(
        profile=endpoint.profile, suite="coding", decode_rate=_LEAST_RATE, prompt_rate=None, speculation="",
        accept_rate=None, machine="", samples=1, measured_at="",
    )  # fmt: skip
    chosen = choose(load_settings(None, {}, {"profile": endpoint.profile}))
    protocol = await chosen.tool_protocol(endpoint)
    look = Live(serving=chosen, endpoint=endpoint, protocol=protocol, baseline=baseline, patience=_NEVER)
    return {one.code: f"{one.level}: {one.message}" async for one in look.examine()}


def examined(profile: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, serving(profile, Path(folder)) as endpoint:
        server = psutil.Process(endpoint.pid)
        before, begun = sum(server.cpu_times()[:2]), time.monotonic()
        shown = asyncio.run(findings(endpoint))
        seconds, worked = time.monotonic() - begun, sum(server.cpu_times()[:2]) - before
    return {
        "seconds": round(seconds, 1),
        "server_processor_seconds": round(worked, 1),
        "holds": worked <= PATIENCE_SECONDS,
        "load": round(os.getloadavg()[0], 2),
        "shown": shown,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--profile", action="append", help="default: embedded-small and embedded")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    result: dict[str, Any] = {"date": time.strftime("%Y-%m-%d"), "limit_seconds": PATIENCE_SECONDS}
    for profile in options.profile or ["embedded-small", "embedded"]:
        result[profile] = examined(profile)
        print(profile, json.dumps(result[profile], indent=2), flush=True)
        if options.output:
            options.output.write_text(json.dumps(result, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
