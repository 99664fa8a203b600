"""Confines itself with Landlock and seccomp, then becomes another program.

Run by its path: `python -I -S landlock_entry.py POLICY PROGRAM ARGUMENTS...`. It imports nothing of ours, and
little at all, because it runs before each command. POLICY is a JSON object of `agent.sandbox.landlock`. With
exit status 126 and a line on standard error it could not confine itself, and PROGRAM did not run.

Sources: landlock(7), the kernel's Documentation/userspace-api/landlock.rst, seccomp(2), capabilities(7).
"""

import ctypes
import errno
import json
import os
import struct
import sys

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
LEAST_ABI = 3  # before that a file that may not be written could be truncated
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
ALL_OF_ABI_3 = (1 << 15) - 1
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
MAKE_CHAR, MAKE_BLOCK = 1 << 6, 1 << 11
READING = EXECUTE | READ_FILE | READ_DIR
SCOPE_SOCKETS_AND_SIGNALS = 3

PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP, PR_SET_SECCOMP, PR_CAP_AMBIENT = 38, 24, 22, 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
ROOT_KEEPS = (1 << 0) | (1 << 1) | (1 << 3)  # CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER

# machine: (audit architecture, socket, io_uring_setup, (add_key, request_key, keyctl), ioctl)
MACHINES = {
    "x86_64": (0xC000003E, 41, 425, (248, 249, 250), 16),
    "aarch64": (0xC00000B7, 198, 425, (217, 218, 219), 29),
}
AF_INET, AF_INET6, AF_NETLINK = 2, 10, 16
TIOCSTI, TIOCLINUX = 0x5412, 0x541C

LIBC = ctypes.CDLL(None, use_errno=True)


def main(arguments: list[str]) -> None:
    if len(arguments) < 2:
        fail("needs a policy and a program")
    try:
        policy = json.loads(arguments[0])
        environment = changed_environment(policy)
        no_new_privileges()
        if os.geteuid() == 0:
            drop_capabilities()
        restrict(policy)
        if policy.get("filter_calls"):
            filter_calls(network=bool(policy.get("network")))
    except (OSError, ValueError, KeyError) as error:
        fail(str(error))
    try:
        os.execvpe(arguments[1], arguments[1:], environment)
    except OSError as error:
        sys.stderr.write(f"{arguments[1]}: {error.strerror}\n")
        sys.exit(127 if error.errno == errno.ENOENT else 126)


def fail(reason: str) -> None:
    sys.stderr.write(f"agent-sandbox: the command did not run: {reason}\n")
    sys.exit(126)


def changed_environment(policy: dict) -> dict:
    unset = set(policy.get("unset", ()))
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    return {**kept, **policy.get("variables", {})}


def call(number: int, *values) -> int:
    result = LIBC.syscall(ctypes.c_long(number), *values)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def prctl(option: int, *values) -> None:
    longs = [value if isinstance(value, ctypes._Pointer) else ctypes.c_ulong(value) for value in values]
    longs += [ctypes.c_ulong(0)] * (4 - len(longs))
    if LIBC.prctl(ctypes.c_int(option), *longs) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl {option}: {os.strerror(code)}")


def no_new_privileges() -> None:
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """Root without the rights that would lead out: mounting, modules, devices, other people's processes."""
    for number in range(64):
        if not (ROOT_KEEPS >> number) & 1:
            try:
                prctl(PR_CAPBSET_DROP, number)
            except OSError:
                break  # beyond the last one that this kernel knows, or not ours to drop
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = ctypes.create_string_buffer(struct.pack("=Ii", 0x20080522, 0))
    keeps = ROOT_KEEPS & permitted_capabilities()
    data = ctypes.create_string_buffer(struct.pack("=6I", keeps, keeps, 0, 0, 0, 0))
    if LIBC.capset(header, data) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"capset: {os.strerror(code)}")


def permitted_capabilities() -> int:
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        line = next((line for line in status if line.startswith("CapPrm:")), "CapPrm: 0")
    return int(line.split()[1], 16)


def abi() -> int:
    """The version of Landlock that this kernel speaks. Raises OSError where it has none."""
    return call(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))


def restrict(policy: dict) -> None:
    version = abi()
    if version < LEAST_ABI:
        raise OSError(0, f"Landlock {version} is too old")
    files = policy.get("files", True)
    handled = (ALL_OF_ABI_3 | (IOCTL_DEV if version >= 5 else 0)) if files else 0
    scoped = SCOPE_SOCKETS_AND_SIGNALS if version >= 6 else 0
    attributes = struct.pack("=QQQ", handled, 0, scoped)[: 24 if version >= 6 else 8]
    ruleset = call(CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    if files:
        add_rules(ruleset, policy, handled)
    call(RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    os.close(ruleset)


def add_rules(ruleset: int, policy: dict, handled: int) -> None:
    hidden = set(policy["hidden"])
    allow(ruleset, "/", READ_DIR)  # names are no secrets, and many programs look around
    for path in readable_parts("/", hidden):
        allow(ruleset, path, READING)
    for folder in policy["readable"]:
        for path in readable_parts(folder, {path for path in hidden if is_below(path, folder)}):
            allow(ruleset, path, READING)
    for folder in policy["writable"]:
        inside = {path for path in hidden if is_below(path, folder)}
        if not inside:
            allow(ruleset, folder, handled & ~(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV))
            continue
        allow(ruleset, folder, handled & ~(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV | OF_FILES))
        for path in readable_parts(folder, inside):
            allow(ruleset, path, handled & ~(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV))
    for path in policy["devices"]:
        allow(ruleset, path, (READ_FILE | READ_DIR | WRITE_FILE | IOCTL_DEV) & handled)


def is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


def readable_parts(folder: str, hidden: set):
    """The largest folders and files that together are `folder` without what is hidden."""
    if folder in hidden:
        return
    if not any(is_below(path, folder) for path in hidden):
        yield folder
        return
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        path = os.path.join(folder, name)
        if not os.path.islink(path):
            yield from readable_parts(path, hidden)


def allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # went away meanwhile, or is not ours to look at
    try:
        if not os.path.isdir(path):
            rights &= OF_FILES
        if rights:
            rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, descriptor), 12)
            call(ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(1), rule, ctypes.c_uint32(0))
    finally:
        os.close(descriptor)


def filter_calls(*, network: bool) -> None:
    """Refuses what Landlock does not know: sockets, keys of the kernel, typing into a terminal."""
    machine = MACHINES.get(os.uname().machine)
    if machine is None:
        raise OSError(0, f"no list of system calls for {os.uname().machine}")
    architecture, socket_call, io_uring, key_calls, ioctl_call = machine
    families = (AF_INET, AF_INET6, AF_NETLINK) if network else ()
    program = [
        (0x20, 0, 0, 4),  # the architecture
        (0x15, 1, 0, architecture),
        (0x06, 0, 0, REFUSED),
        (0x20, 0, 0, 0),  # the number of the call
        (0x35, 0, 1, 0x40000000),  # x32
        (0x06, 0, 0, REFUSED),
    ]
    for number in (io_uring, *key_calls):
        program += [(0x15, 0, 1, number), (0x06, 0, 0, REFUSED)]
    program += guarded_argument(socket_call, 16, families, allowed=True)
    program += guarded_argument(ioctl_call, 24, (TIOCSTI, TIOCLINUX), allowed=False)
    program.append((0x06, 0, 0, ALLOWED))
    code = b"".join(struct.pack("=HBBI", *step) for step in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    head = FilterProgram(len(program), ctypes.cast(buffer, ctypes.c_void_p))
    prctl(PR_SET_SECCOMP, 2, ctypes.pointer(head))


REFUSED = 0x00050000 | errno.EACCES
ALLOWED = 0x7FFF0000


class FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def guarded_argument(number: int, offset: int, values: tuple, *, allowed: bool) -> list:
    """Steps for one call: an argument (its low 32 bits) that is, or is not, one of `values` is refused."""
    checks = [(0x15, len(values) - index, 0, value) for index, value in enumerate(values)]
    ends = (REFUSED, ALLOWED) if allowed else (ALLOWED, REFUSED)
    body = [(0x20, 0, 0, offset), *checks, *((0x06, 0, 0, end) for end in ends)]
    return [(0x15, 0, len(body), number), *body]


if __name__ == "__main__":
    main(sys.argv[1:])
