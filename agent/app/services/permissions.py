"""The rules that a person's answers, and skills in use, added to this session."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.app.chat.approvals import PersonGate
from agent.core.errors import UsageError
from agent.permissions.rules import Rules


@dataclass(frozen=True, slots=True)
class PermissionServices:
    """`session_rules` lists what was added since the session began, `forget_rule` takes one out again.

    `settled` are the rules that the session began with.
    """

    gate: PersonGate
    settled: Rules

    async def session_rules(self, _: Mapping[str, Any]) -> list[str]:
        return list(
            dict.fromkeys(rule.text for rule in self.gate.rules.rules if rule not in self.settled.rules)
        )

    async def forget_rule(self, arguments: Mapping[str, Any]) -> str:
        """Raises UsageError: no such rule was added."""
        text = str(arguments.get("rule", "")).strip()
        if text not in await self.session_rules({}):
            raise UsageError(f"this session has no rule {text!r} of its own", "/permissions lists them")
        kept = (rule for rule in self.gate.rules.rules if rule.text != text or rule in self.settled.rules)
        self.gate.rules = Rules(tuple(kept))
        return text
