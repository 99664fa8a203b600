"""What can be installed, and from where: pinned releases of llama-server, as data in `recipes/`.

A release names its source distribution on a package index, with checksum, or a tag of a git repository, or
both. Anything else about a release (its dialect, definitions for cmake) is data too.
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from agent.core.errors import UsageError
from agent.server.profile import DialectName

Backend = Literal["cpu", "cuda", "vulkan", "rocm", "metal"]
BACKENDS: tuple[Backend, ...] = get_args(Backend)
_FOLDER = Path(__file__).with_name("recipes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sdist:
    """A source distribution. `folder` is where the server's source lies in it."""

    project: str
    version: str
    file: str
    sha256: str
    bytes: int
    folder: str

    @property
    def identity(self) -> str:
        return f"sha256:{self.sha256}"

    @property
    def label(self) -> str:
        return f"{self.project} {self.version} from the package index"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """A tag of a git repository. `commit` is what the tag has to point at, empty when that is not known."""

    url: str
    tag: str
    commit: str = ""

    @property
    def identity(self) -> str:
        return f"git:{self.url}@{self.commit or self.tag}"

    @property
    def label(self) -> str:
        return f"tag {self.tag} of {self.url}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One version that can be built. `dialect` is None where only the built program can tell."""

    name: str
    version: str
    title: str
    dialect: DialectName | None = None
    about: str = ""
    sdist: Sdist | None = None
    checkout: Checkout | None = None
    definitions: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"{self.name}@{self.version}"

    def sources(self, kind: Literal["any", "index", "git"] = "any") -> tuple[Sdist | Checkout, ...]:
        """Where it may come from, in this order: the index first, because its files have a checksum.

        Raises:
            UsageError: there is no source of this kind.
        """
        index = (self.sdist,) if self.sdist and kind != "git" else ()
        git = (self.checkout,) if self.checkout and kind != "index" else ()
        if not (*index, *git):
            other = "git" if kind == "index" else "index"
            raise UsageError(
                f"{self.key} has no source of the kind {kind!r}", f"leave out --source, or {other}"
            )
        return (*index, *git)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A program that can be installed, and its pinned releases: the first is the usual one."""

    name: str
    title: str
    git: str
    releases: tuple[Release, ...]

    def release(self, version: str = "") -> Release:
        """The release with this version, or the first whose version begins with it; empty = the usual one.

        Raises:
            UsageError: there is none.
        """
        wanted = version.removeprefix("v")
        if not wanted:
            return self.releases[0]
        for one in self.releases:
            if one.version == wanted:
                return one
        for one in self.releases:
            if one.version.startswith(f"{wanted}."):
                return one
        known = ", ".join(one.version for one in self.releases)
        raise UsageError(
            f"{self.name} {version} is not one of the pinned versions: {known}",
            "any other is built with --tag, which takes a tag of its git repository",
        )

    def at_tag(self, tag: str) -> Release:
        """The release of a tag that is not pinned here. Its commit is not known before.

        Raises:
            UsageError: no git tag can be called that.
        """
        for one in self.releases:
            if one.checkout and one.checkout.tag == tag:
                return one
        if not tag or tag.startswith(("-", ".", "/")) or not all(c.isalnum() or c in "._-/" for c in tag):
            raise UsageError(f"{tag!r} is no name of a git tag")
        version = (tag[1:] if tag[:1] in "vb" and tag[1:2].isdecimal() else tag).replace("/", "-")
        source = Checkout(url=self.git, tag=tag)
        return Release(name=self.name, version=version, title=self.title, checkout=source)


def recipe_names() -> tuple[str, ...]:
    """Everything that has a recipe."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def load_recipe(name: str) -> Recipe:
    """The recipe of this name.

    Raises:
        UsageError: there is none.
    """
    path = _FOLDER / f"{name}.toml"
    if name != Path(name).name or not path.is_file():
        known = ", ".join(recipe_names())
        raise UsageError(f"there is no recipe {name!r}", f"known are {known} and embedded")
    table = tomllib.loads(path.read_text("utf-8"))
    return Recipe(
        name=name,
        title=table["title"],
        git=table["git"],
        releases=tuple(_release(name, table, one) for one in table["release"]),
    )


def definitions(
    release: Release, backend: Backend, architectures: str = "", *, web_page: bool, source_options: str
) -> dict[str, str]:
    """The cmake definitions of a build.

    Args:
        architectures: for CUDA, as cmake wants them ("86;89"); empty = its own choice.
        web_page: whether the server's own page is put into the program; it is fetched during the build.
        source_options: the text of the source's CMakeLists files, for options that come and go.
    """
    table = _cmake()
    known = {name: value for name, value in table["if_known"].items() if f"option({name} " in source_options}
    chosen = {**table["all"], **known, **table[backend], **release.definitions}
    if backend == "cuda" and architectures:
        chosen["CMAKE_CUDA_ARCHITECTURES"] = architectures
    if "option(LLAMA_USE_PREBUILT_UI " in source_options:
        chosen["LLAMA_USE_PREBUILT_UI"] = "ON" if web_page else "OFF"
    return chosen


def build_target() -> str:
    return str(_cmake()["target"])


def _cmake() -> dict[str, Any]:
    return json.loads((_FOLDER / "cmake.json").read_text("utf-8"))


def _release(name: str, recipe: Mapping[str, Any], table: Mapping[str, Any]) -> Release:
    sdist, checkout = table.get("sdist"), table.get("checkout")
    return Release(
        name=name,
        version=table["version"],
        title=recipe["title"],
        dialect=table["dialect"],
        about=table["about"],
        sdist=Sdist(**sdist) if sdist else None,
        checkout=Checkout(url=recipe["git"], **checkout) if checkout else None,
        definitions=table.get("definitions", {}),
    )
