"""Gives the programs of a sandbox without network a way to the proxy outside, then becomes one of them.

Run by its path: `python -I -S bridge_entry.py SOCKET LOCAL PROGRAM ARGUMENTS...`. SOCKET is the proxy's;
LOCAL is a JSON list of hosts and ports of this machine that are reached without the proxy. A process
in the background carries the bytes; it ends when no other process of the sandbox is left. It imports little,
because it runs before each command.
"""

import json
import os
import select
import socket
import sys
import threading
import time

LIFELINE = b"LIFELINE\r\n\r\n"
CHUNK_BYTES = 1 << 16
LOOK_SECONDS = 0.1
LONGEST_ANSWER_BYTES = 1 << 16
NOT_BY_PROXY = "localhost,127.0.0.1,::1"
FIRST_PROCESS = 1  # of the sandbox: bubblewrap's own


def main(arguments):
    path, local, command = arguments[0], json.loads(arguments[1]), arguments[2:]
    try:
        lifeline = connected(path)
        lifeline.sendall(LIFELINE)
        proxy = listening("127.0.0.1", 0)
    except OSError as error:
        sys.stderr.write(f"agent-sandbox: the command did not run: no way to the network: {error.strerror}\n")
        sys.exit(126)
    port = proxy.getsockname()[1]
    listeners = [(proxy, b"")] + [found for host, number in local for found in forwarding(host, number)]
    leader = os.getpid()
    helper = os.fork()
    if helper == 0:
        carry(path, listeners, leader, lifeline)
    os.waitpid(helper, 0)
    for listener, _ in listeners:
        listener.close()
    lifeline.close()
    try:
        os.execvpe(command[0], command, with_proxy(os.environ, port))
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


def with_proxy(environment, port):
    address = f"http://127.0.0.1:{port}"
    names = [
        name for which in ("http", "https", "all") for name in (f"{which}_proxy", f"{which}_PROXY".upper())
    ]
    return {
        **environment,
        **dict.fromkeys(names, address),
        "NO_PROXY": NOT_BY_PROXY,
        "no_proxy": NOT_BY_PROXY,
        "NODE_USE_ENV_PROXY": "1",
    }


def connected(path):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    return connection


def listening(host, port):
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    listener.listen(128)
    return listener


def forwarding(host, port):
    """What stands in for a port of the machine, where the sandbox lets it be bound."""
    shown = f"[{host}]" if ":" in host else host
    request = f"CONNECT {shown}:{port} HTTP/1.1\r\n\r\n".encode("ascii")
    for address in ("127.0.0.1", "::1") if host == "localhost" else (host,):
        try:
            yield listening(address, port), request
        except OSError:
            continue  # the proxy can still be asked for it


def carry(path, listeners, leader, lifeline):
    """The background process, which is nobody's child and holds nothing of the command's. Never returns."""
    try:
        os.setsid()
        if os.fork() != 0:
            os._exit(0)
        keep_only({lifeline.fileno(), *(listener.fileno() for listener, _ in listeners)})
        for listener, request in listeners:
            threading.Thread(target=accept, args=(path, listener, request), daemon=True).start()
        wait_for(leader)
        while others_are_left():
            time.sleep(LOOK_SECONDS)
    finally:
        os._exit(0)


def keep_only(wanted):
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in wanted:
            try:
                os.close(int(name))
            except OSError:
                continue  # that of the listing itself


def wait_for(leader):
    try:
        descriptor = os.pidfd_open(leader)
    except OSError:
        return  # it has ended, or an old kernel, where looking has to do
    watched = select.poll()
    watched.register(descriptor, select.POLLIN)
    watched.poll()


def others_are_left():
    own = {FIRST_PROCESS, os.getpid()}
    return any(name.isdigit() and int(name) not in own and is_alive(name) for name in os.listdir("/proc"))


def is_alive(name):
    try:
        with open(f"/proc/{name}/stat", "rb") as status:
            return status.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return False


def accept(path, listener, request):
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            time.sleep(LOOK_SECONDS)  # too many open at once
            continue
        threading.Thread(target=join, args=(path, connection, request), daemon=True).start()


def join(path, connection, request):
    """Carries one connection to the proxy; with a `request` to it first, whose answer is kept here."""
    try:
        outside = connected(path)
    except OSError:
        connection.close()
        return
    with connection, outside:
        if request and not asked(outside, request):
            return
        back = threading.Thread(target=pump, args=(outside, connection), daemon=True)
        back.start()
        pump(connection, outside)
        back.join()


def asked(outside, request):
    try:
        outside.sendall(request)
        answer = b""
        while not answer.endswith(b"\r\n\r\n") and len(answer) < LONGEST_ANSWER_BYTES:
            byte = outside.recv(1)  # no more, as what follows is the other program's
            if not byte:
                return False
            answer += byte
    except OSError:
        return False
    return answer.split(b" ", 2)[1:2] == [b"200"]


def pump(source, target):
    try:
        while True:
            data = source.recv(CHUNK_BYTES)
            if not data:
                break
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # it is closed already


if __name__ == "__main__":
    main(sys.argv[1:])
