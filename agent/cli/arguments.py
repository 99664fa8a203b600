"""The parser of the command line: its errors are one line that says what is wrong, and what to do."""

import argparse
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from agent.cli.elsewhere import action_meant, command_hint, option_meant

_KINDS = {"int": "a whole number", "float": "a number"}
_WRONG_VALUE = re.compile(
    r"argument (?P<name>\S+): invalid (?P<kind>int|float) value: (?P<value>.*)", re.DOTALL
)


class Parser(argparse.ArgumentParser):
    """Raises UsageError with a hint, where possible with the word that was meant."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        wrong = _WRONG_VALUE.fullmatch(message)
        if wrong:
            message = f"{wrong['name']} takes {_KINDS[wrong['kind']]}, not {wrong['value']}"
        self._refuse(message, ())

    def format_help(self) -> str:
        """With a sentence and examples for a command that has no further ones."""
        from agent.cli.leaf_help import DESCRIPTIONS, examples_of

        self.description = self.description or DESCRIPTIONS.get(self.prog)
        examples = examples_of(self.prog)
        return super().format_help() + (f"\n{examples}" if examples else "")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuses an unknown option here, where the options are known that may have been meant."""
        found, unknown = super().parse_known_args(args, namespace)
        option = next((word for word in unknown if word.startswith("-") and word.strip("-")), None)
        if option:
            name = option.partition("=")[0]
            known = self._option_string_actions
            same = option_meant(name, known)
            # Without the dashes: two of them alike make `--bogus` look like `--jobs`.
            words = {known_one.lstrip("-"): known_one for known_one in known}
            meant = [words[word] for word in close_to(name.lstrip("-"), words)]
            self._refuse(f"there is no option {name}", [same] if same else meant)
        return found, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        if action.nargs == argparse.PARSER:
            kind, word = str(action.metavar or "action").lower(), str(value)
            same = action_meant(word, known) if kind == "action" else ""
            hint = command_hint(word) if kind == "command" else ""
            self._refuse(f"there is no {kind} {value!r}", [same] if same else close_to(word, known), hint)
        name = "/".join(action.option_strings) or action.metavar or action.dest
        self._refuse(f"{name} takes {_one_of(known)}, not {value!r}", close_to(str(value), known))

    def _refuse(self, message: str, meant: Sequence[str], hint: str = "") -> NoReturn:
        from agent.core.errors import UsageError

        hint = hint or (f"did you mean {meant[0]}?" if meant else f"see `{self.prog} --help`")
        raise UsageError(message, hint)


def close_to(word: str, known: Iterable[str]) -> Sequence[str]:
    """The one of `known` that `word` was probably meant to be, or none."""
    from agent.core.likeness import alike

    return alike(word, known)


def _one_of(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else "".join(words)
