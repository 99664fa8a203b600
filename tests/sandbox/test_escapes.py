"""The ways out of a sandbox that are known, each tried from inside."""

import asyncio
import os
import pty
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.sandbox.cage import Cage


def test_the_workspace_can_be_changed(cage: Cage):
    assert cage.run("mkdir a && echo x > a/b && mv a/b a/c && cat a/c").output == "x\n"
    assert (cage.workspace / "a" / "c").read_text(encoding="utf-8") == "x\n"


def test_nothing_outside_can_be_written_removed_or_renamed(cage: Cage):
    commands = ["echo x > {}/file", "rm {}/file", "mv {}/file {}/other", "touch {}/new"]
    for command in [*commands, "truncate -s 0 {}/file", "mkdir {}/d", "ln -s x {}/l"]:
        assert cage.run(command.replace("{}", str(cage.outside))).code != 0, command
    assert [path.name for path in cage.outside.iterdir()] == ["file"]
    assert (cage.outside / "file").read_text(encoding="utf-8") == "kept"


def test_a_symbolic_link_leads_to_nothing_that_could_be_written(cage: Cage):
    assert cage.run(f"ln -s {cage.outside} link && echo x > link/file").code != 0
    (cage.workspace / "before").symlink_to(cage.outside / "file")
    assert cage.run("echo x > before").code != 0
    assert (cage.outside / "file").read_text(encoding="utf-8") == "kept"


def test_the_root_of_a_process_is_no_way_around(cage: Cage):
    for process in ("self", "1", str(os.getpid())):
        assert cage.run(f"echo x > /proc/{process}/root{cage.outside}/file").code != 0
        assert "a-private-key" not in cage.run(f"cat /proc/{process}/root{cage.home}/.ssh/id_ed25519").output
    assert (cage.outside / "file").read_text(encoding="utf-8") == "kept"


def test_no_hard_link_to_something_outside_can_be_made(cage: Cage):
    cage.run(f"ln {cage.outside}/file here; echo x >> here")
    assert (cage.outside / "file").read_text(encoding="utf-8") == "kept"


def test_a_program_with_the_rights_of_another_user_gains_none(cage: Cage):
    status = cage.run("cat /proc/self/status").output
    assert "NoNewPrivs:\t1" in status
    rights = int(status.split("CapEff:")[1].split()[0], 16)
    without_the_harmless = ~0b1011  # what root needs for the files of others in its workspace
    assert rights & without_the_harmless == 0


def test_secrets_in_the_home_folder_cannot_be_read(cage: Cage):
    seen = cage.run("cat ~/.ssh/id_ed25519; cat ~/.netrc; cat ~/notes; cp -r ~/.ssh . ; cat .ssh/*").output
    assert "a-private-key" not in seen
    assert "a-password" not in seen
    assert "plain" in seen


def test_the_parent_shows_nothing_of_its_memory_and_environment(cage: Cage):
    for name in ("environ", "mem", "maps", "fd/0", "cwd/x"):
        assert cage.run(f"head -c1 /proc/{os.getpid()}/{name} > /dev/null").code != 0, name


def test_the_parent_cannot_be_traced(cage: Cage):
    code = f"import ctypes; print(ctypes.CDLL(None).ptrace(16, {os.getpid()}, 0, 0))"
    assert cage.python(code).output.strip() == "-1"


def test_processes_outside_cannot_be_signalled(cage: Cage):
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as victim:
        try:
            assert cage.run(f"kill -9 {victim.pid} || kill -9 -- -{victim.pid}").code != 0
            assert victim.poll() is None
        finally:
            victim.kill()


def test_without_network_nothing_of_this_machine_answers(cage: Cage):
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 5)"
        assert cage.python(code).code != 0


def test_without_network_nothing_is_sent_without_a_connection_either(cage: Cage):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(0.2)
        where = ("127.0.0.1", receiver.getsockname()[1])
        cage.python(f"import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', {where})")
        with pytest.raises(TimeoutError):
            receiver.recv(1)


def test_with_network_the_machine_can_be_reached(cage: Cage):
    cage.network = True
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 5)"
        assert cage.python(code).code == 0


def test_sockets_without_a_file_cannot_be_reached_even_with_network(cage: Cage):
    cage.network = True
    name = f"\0agent-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        assert cage.python(f"import socket; socket.socket(socket.AF_UNIX).connect({name!r})").code != 0


def test_sockets_of_services_cannot_be_reached(cage: Cage):
    cage.network = True
    assert (
        cage.run("find /run /var/run/ -type s | wc -l").output.strip() == "0" or cage.found.kind == "landlock"
    )
    if cage.found.kind == "landlock":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(cage.workspace / "docker.sock"))
            server.listen()
            assert (
                cage.python("import socket; socket.socket(socket.AF_UNIX).connect('docker.sock')").code != 0
            )


def test_nothing_can_be_typed_into_a_terminal(cage: Cage):
    reading, terminal = pty.openpty()
    try:
        code = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSTI, b'x')"
        assert cage.python(code, stdin=terminal).code != 0
    finally:
        os.close(reading)
        os.close(terminal)


def test_no_terminal_is_there(cage: Cage):
    assert cage.run("echo x > /dev/tty").code != 0


def test_no_file_system_can_be_mounted(cage: Cage):
    assert cage.run("mount -t tmpfs x /mnt || mount -o remount,rw /").code != 0


def test_a_namespace_of_its_own_opens_nothing(cage: Cage):
    ways = (
        "mount -o remount,rw,bind /; mount -o remount,rw,bind OUT; umount -l OUT; echo bad > OUT/file",
        "umount -l HOME/.ssh; umount -l HOME; cat HOME/.ssh/id_ed25519",
    )
    for way in ways:
        script = way.replace("OUT", str(cage.outside)).replace("HOME", str(cage.home))
        output = cage.run(f"unshare --user --map-root-user --mount sh -c '{script}'").output
        assert "a-private-key" not in output
    assert (cage.outside / "file").read_text(encoding="utf-8") == "kept"


def test_other_roots_namespaces_disks_and_groups_of_processes_are_out_of_reach(cage: Cage):
    disks = [path for path in Path("/dev").iterdir() if path.is_block_device()]
    assert cage.run("chroot / true").code != 0
    assert cage.run("nsenter --target 1 --mount true").code != 0
    assert cage.run(f"mkdir /sys/fs/cgroup/agent-test-{os.getpid()}").code != 0
    for disk in disks[:3]:
        assert cage.run(f"head -c 1 {disk} > /dev/null").code != 0, disk
        assert cage.run(f"mknod own b {os.major(disk.stat().st_rdev)} 0").code != 0


def test_nothing_of_the_kernel_can_be_set(cage: Cage):
    before = Path("/proc/sys/kernel/hostname").read_text(encoding="utf-8")
    cage.run("echo agent-test > /proc/sys/kernel/hostname; echo 0 > /proc/sys/kernel/randomize_va_space")
    assert Path("/proc/sys/kernel/hostname").read_text(encoding="utf-8") == before
    assert cage.run("echo x > /proc/sysrq-trigger").code != 0


@pytest.mark.only("bubblewrap")
def test_what_left_its_process_group_ends_with_the_sandbox(cage: Cage):
    sandbox = cage.sandbox()
    script = "setsid sh -c 'echo up > up; exec sleep 300' & while ! [ -s up ]; do :; done; sleep 300"
    wrapped = asyncio.run(sandbox.confined(("bash", "-c", script), outlives=True))
    with subprocess.Popen(wrapped, cwd=cage.workspace, start_new_session=True) as leader:
        try:
            wait_until(lambda: (cage.workspace / "up").exists() and sleepers(cage.workspace))
        finally:
            os.killpg(leader.pid, signal.SIGKILL)
    wait_until(lambda: not sleepers(cage.workspace))
    sandbox.close()


def sleepers(folder: Path) -> list[str]:
    """Processes that work in `folder`."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and (process / "cwd").readlink() == folder:
                found.append(process.name)
        except OSError:
            continue
    return found


def wait_until(condition: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < until, "it never became true"
        time.sleep(0.05)
