"""Keeping a rule for good that a person has agreed to in a conversation."""

import json
from collections.abc import Mapping
from pathlib import Path

from agent.config.edit import set_user_value, with_value
from agent.config.files import write_atomically
from agent.config.layers import decode, file_layer
from agent.config.load import read_project_config, read_user_layer
from agent.config.trust import TrustStore
from agent.core.errors import UsageError

_KEY = "permissions.allow"


def allow_always(rule: str, project_root: Path | None, environment: Mapping[str, str]) -> Path:
    """Adds an allow rule, and returns the file that has it now.

    That is the project's own file where there is one that the person trusts, and it stays trusted; the
    person's file otherwise. A rule that is there already is not added again.

    Raises:
        UsageError: the file cannot be read, changed safely or written.
    """
    project = _in_project(rule, project_root, environment) if project_root is not None else None
    if project is not None:
        return project
    known = read_user_layer(environment).values.get(_KEY, [])
    rules = [*known, *([] if rule in known else [rule])]
    path, _ = set_user_value(_KEY, json.dumps(rules, ensure_ascii=False), environment)
    return path


def _in_project(rule: str, root: Path, environment: Mapping[str, str]) -> Path | None:
    project = read_project_config(root)
    trust = TrustStore.of(environment)
    if project is None or not trust.trusts(project.root, project.content):
        return None
    before = dict(project.layer.values)
    known = before.get(_KEY, [])
    if rule in known:
        return project.path
    rules = [*known, rule]
    changed = with_value(project.path, decode(project.path, project.content), _KEY, rules)
    content = changed.encode("utf-8")
    if dict(file_layer("project", project.path, content).values) != {**before, _KEY: rules}:
        raise UsageError(f"{project.path} cannot be changed safely; add the rule there by hand")
    write_atomically(project.path, changed)
    trust.trust(project.root, content)
    return project.path
