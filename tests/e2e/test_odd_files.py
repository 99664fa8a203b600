"""A repository whose files are devices, pipes, loops and odd names is worked in like any other."""

import os
import sys

from tests.conftest import StartServer
from tests.e2e.conftest import Place
from tests.fakes.script import call

_LIMITED = (
    "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30));"
    " sys.argv[0] = 'agent'; runpy.run_module('agent', run_name='__main__', alter_sys=True)"
)
NAMES = ("zero.txt", "AGENTS.md", "README.md", ".gitignore", "notes.py", "pyproject.toml", "src/.gitignore")


def test_links_to_a_device_without_end_are_not_read(place: Place, scripted_server: StartServer):
    place.write("src/a.py", "needle = 1\n")
    for name in NAMES:
        (place.workspace / name).symlink_to("/dev/zero")
    server = scripted_server(
        call("glob", pattern="**/*"),
        call("search", pattern="needle"),
        call("read", path="."),
        call("finish", answer="Done."),
    )
    place.use(server.url)
    done = place.run("run", "-p", "Look at notes.py and zero.txt", program=(sys.executable, "-c", _LIMITED))
    assert done.code == 0, done.err
    texts = [event["text"] for event in place.sessions()[-1] if event["type"] == "tool_finished"]
    assert all("a.py" in text or "src/" in text for text in texts[:3])


def test_pipes_sockets_and_loops_are_passed_over(place: Place, scripted_server: StartServer):
    place.write("src/a.py", "needle = 1\n")
    for name in NAMES:
        if ".gitignore" not in name:  # ripgrep waits for it, until the search is ended
            os.mkfifo(place.workspace / name)
    for name, target in (("loop1", "loop2"), ("loop2", "loop1"), ("self", ".")):
        (place.workspace / name).symlink_to(target)
    server = scripted_server(
        call("read", path="."),
        call("search", pattern="needle"),
        call("finish", answer="Done."),
    )
    place.use(server.url)
    done = place.run("run", "-p", "Look at notes.py and loop1")
    assert done.code == 0, done.err
    texts = [event["text"] for event in place.sessions()[-1] if event["type"] == "tool_finished"]
    assert {"src/", "self/", "loop1"} <= set(texts[0].split("\n"))
    assert "needle = 1" in texts[1]
