"""The looks: quiet ones for dark and light terminals, and one that takes the terminal's own colours."""

from collections.abc import Mapping

from textual.theme import Theme

DARK = Theme(
    name="agent-dark",
    primary="#7aa2d6",
    secondary="#8fb8a8",
    accent="#d6a97a",
    warning="#d9b36c",
    error="#d97a7a",
    success="#8fbf8f",
    foreground="#d4d8df",
    background="#16181d",
    surface="#1d2026",
    panel="#262a32",
    dark=True,
    variables={
        "quiet": "#8a919e",
        "input-cursor-background": "#d4d8df",
        "input-cursor-foreground": "#16181d",
    },
)
LIGHT = Theme(
    name="agent-light",
    primary="#2f5f9e",
    secondary="#2f7360",
    accent="#9a5b1e",
    warning="#8a6100",
    error="#b3342f",
    success="#2e7d32",
    foreground="#22262e",
    background="#fbfaf7",
    surface="#f1efea",
    panel="#e4e1d9",
    dark=False,
    variables={
        "quiet": "#6a6f78",
        "input-cursor-background": "#22262e",
        "input-cursor-foreground": "#fbfaf7",
    },
)
OURS = (DARK, LIGHT)
DEFAULT = DARK.name


def theme_for(chosen: str, environment: Mapping[str, str]) -> str:
    """The chosen theme; else the one for the background that the terminal names in COLORFGBG, else dark."""
    if chosen and chosen not in ("auto", "dark", "light"):
        return chosen
    if chosen in ("dark", "light"):
        return LIGHT.name if chosen == "light" else DARK.name
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    return LIGHT.name if background in ("7", "15") else DARK.name
