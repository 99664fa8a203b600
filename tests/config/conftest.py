"""A person with folders of their own and a project, both empty."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.config.load import LoadedSettings, load_settings
from agent.config.trust import TrustStore
from agent.core.errors import UsageError


@dataclass(frozen=True)
class Home:
    """Writes configuration files and loads them."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {f"AGENT_{kind}_HOME": str(self.folder / kind.lower()) for kind in ("CONFIG", "STATE", "DATA")}

    @property
    def user_file(self) -> Path:
        return self.folder / "config" / "config.toml"

    @property
    def project(self) -> Path:
        return self.folder / "project"

    @property
    def project_file(self) -> Path:
        return self.project / ".agent" / "config.toml"

    @property
    def store(self) -> TrustStore:
        return TrustStore.of(self.environment)

    def user(self, text: str) -> None:
        self._write(self.user_file, text.encode("utf-8"))

    def user_bytes(self, content: bytes) -> None:
        self._write(self.user_file, content)

    def clone(self, text: str) -> None:
        """The project's file as it came with a clone."""
        self._write(self.project_file, text.encode("utf-8"))

    def load(self, variables: dict[str, str] | None = None, **flags: object) -> LoadedSettings:
        dotted = {key.replace("__", "."): value for key, value in flags.items()}
        return load_settings(self.project, {**self.environment, **(variables or {})}, dotted)

    def refusal(self, variables: dict[str, str] | None = None, **flags: object) -> str:
        """The message with which loading is refused; always one line."""
        with pytest.raises(UsageError) as caught:
            self.load(variables, **flags)
        assert "\n" not in caught.value.message
        return caught.value.message

    def _write(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)
