"""A machine as it is needed: its hardware, the servers that run on it, folders of its own."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent.app.setup.look import Outside, Surroundings, look_around
from agent.app.setup.proposal import Proposal, propose
from agent.server.engines import EngineFacts
from agent.server.hardware import Gpu, Hardware

GIB = 2**30


def gpu(gib: float, name: str = "NVIDIA GeForce RTX 4090") -> Gpu:
    return Gpu(name, int(gib * GIB), int(gib * GIB), compute_capability="8.9", driver="580")


def hardware(*gpus: Gpu, ram_gib: float = 32, disk_gb: float = 500) -> Hardware:
    ram = int(ram_gib * GIB)
    return Hardware("A CPU", 8, 16, ram, ram, int(disk_gb * 1e9), gpus)


@dataclass
class Machine:
    """Call `looked()` for what `agent setup` sees."""

    folder: Path
    hardware: Hardware = field(default_factory=hardware)
    running: Sequence[EngineFacts] = ()
    engine: str | None = "1.0"
    variables: dict[str, str] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        kinds = ("config", "state", "data", "cache")
        homes = {f"AGENT_{kind.upper()}_HOME": str(self.folder / kind) for kind in kinds}
        return {**homes, "PATH": str(self.folder / "bin"), **self.variables}

    @property
    def models(self) -> Path:
        return self.folder / "data" / "models"

    def configure(self, text: str) -> Path:
        path = self.folder / "config" / "config.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def add_model(self, name: str, folder: Path | None = None) -> Path:
        folder = folder or self.models
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"GGUF")
        return folder / name

    def looked(self) -> Surroundings:
        return look_around(
            Outside(
                hardware=lambda _: self.hardware,
                running=lambda: self.running,
                engine_version=lambda: self.engine,
                silence=lambda url: self.silent.get(url, ""),
                environment=self.environment,
                home=self.folder / "home",
            )
        )

    def proposal(self, wanted: str = "", unfinished: str = "") -> Proposal:
        return propose(self.looked(), wanted, unfinished)
