"""Names of styles and what they look like in the present theme.

Names are joined by `+`, later ones win. Everything is made of the theme's own colours, except for code, whose
colours have to differ from each other more than a theme's do. With the terminal's own 16 colours nothing is
mixed. No meaning hangs on a colour: signs and words say the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rich.style import Style
from textual.color import Color, ColorParseError

_DARK_CODE = {
    "keyword": "#b99ad6",
    "string": "#9dbd84",
    "number": "#d6a97a",
    "comment": "#838b99",
    "function": "#7fb0de",
    "type": "#d9c07c",
    "builtin": "#77bdb8",
    "decorator": "#d6a97a",
}
_LIGHT_CODE = {
    "keyword": "#7a3e9d",
    "string": "#3d6b1f",
    "number": "#8f4a0e",
    "comment": "#6a6f78",
    "function": "#1f5c9e",
    "type": "#7a5c00",
    "builtin": "#1a6a66",
    "decorator": "#8f4a0e",
}
_ANSI_CODE = {
    "keyword": "magenta",
    "string": "green",
    "number": "yellow",
    "comment": "bright_black",
    "function": "blue",
    "type": "yellow",
    "builtin": "cyan",
    "decorator": "yellow",
}


@dataclass
class Look:
    """The styles of one theme. `base` is text on the background of the view."""

    base: Style
    names: dict[str, Style]
    _known: dict[str, Style] = field(default_factory=dict)

    def style(self, name: str) -> Style:
        """The style for a name such as `on-code+code.string`; unknown parts change nothing."""
        found = self._known.get(name)
        if found is None:
            found = self.base
            for part in name.split("+"):
                found = found + self.names.get(part, Style.null())
            self._known[name] = found
        return found


def look_of(variables: Mapping[str, str], *, dark: bool, ansi: bool) -> Look:
    """The look for a theme's CSS variables."""
    return _ansi_look() if ansi else _mixed_look(variables, dark=dark)


def _mixed_look(variables: Mapping[str, str], *, dark: bool) -> Look:
    def colour(name: str, otherwise: str) -> Color:
        try:
            return Color.parse(variables.get(name, otherwise))
        except ColorParseError:
            return Color.parse(otherwise)

    background = colour("background", "#16181d" if dark else "#fbfaf7")
    text = colour("foreground", "#d4d8df" if dark else "#22262e")
    surface = colour("surface", "#1d2026" if dark else "#f1efea")
    primary, accent = colour("primary", "#7aa2d6"), colour("accent", "#d6a97a")
    good, bad, warn = colour("success", "#8fbf8f"), colour("error", "#d97a7a"), colour("warning", "#d9b36c")
    tint = 0.16 if dark else 0.14

    def ink(value: Color, *, bold: bool = False, italic: bool = False, underline: bool = False) -> Style:
        marks = Style(bold=bold or None, italic=italic or None, underline=underline or None)
        return Style(color=value.rich_color) + marks

    def paper(value: Color) -> Style:
        return Style(bgcolor=value.rich_color)

    names = {
        "strong": Style(bold=True),
        "emphasis": Style(italic=True),
        "struck": Style(strike=True),
        "heading": ink(primary, bold=True),
        "code": ink(accent),
        "link": ink(primary, underline=True),
        "quiet": ink(background.blend(text, 0.58)),
        "soft": ink(background.blend(text, 0.78)),
        "thought": ink(background.blend(text, 0.62), italic=True),
        "faint": ink(background.blend(text, 0.34)),
        "person": ink(primary),
        "tool": ink(text, bold=True),
        "active": ink(primary),
        "attention": ink(warn, bold=True),
        "good": ink(good),
        "bad": ink(bad),
        "warn": ink(warn),
        "added": ink(good),
        "removed": ink(bad),
        "on-code": paper(surface),
        "on-added": paper(background.blend(good, tint)),
        "on-removed": paper(background.blend(bad, tint)),
        "chosen": ink(accent, bold=True),
    }
    code = _DARK_CODE if dark else _LIGHT_CODE
    names |= {f"code.{name}": ink(Color.parse(value)) for name, value in code.items()}
    return Look(Style(color=text.rich_color, bgcolor=background.rich_color), names)


def _ansi_look() -> Look:
    names = {
        "strong": Style(bold=True),
        "emphasis": Style(italic=True),
        "struck": Style(strike=True),
        "heading": Style(color="blue", bold=True),
        "code": Style(color="cyan"),
        "link": Style(color="blue", underline=True),
        "quiet": Style(dim=True),
        "thought": Style(dim=True, italic=True),
        "faint": Style(dim=True),
        "person": Style(color="blue"),
        "tool": Style(bold=True),
        "active": Style(color="blue"),
        "attention": Style(color="yellow", bold=True),
        "good": Style(color="green"),
        "bad": Style(color="red"),
        "warn": Style(color="yellow"),
        "added": Style(color="green"),
        "removed": Style(color="red"),
        "chosen": Style(color="yellow", bold=True),
    }
    names |= {f"code.{name}": Style(color=value) for name, value in _ANSI_CODE.items()}
    return Look(Style(color="default", bgcolor="default"), names)
