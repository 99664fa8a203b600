"""A run whose user has no rights but those of an account, also where the tests are run by root."""

import os
import shutil
import subprocess
from functools import lru_cache

import pytest

from tests.conftest import StartServer
from tests.e2e.conftest import AGENT, Place
from tests.fakes.script import call

pytestmark = pytest.mark.timeout(300)

_USER = ("unshare", "--user", "--map-user=1000", "--map-group=1000", "--")


@lru_cache(maxsize=1)
def as_user() -> tuple[str, ...]:
    """What a command begins with so that root's files are its own, and nothing else of root is."""
    if os.geteuid() != 0:
        return ()
    works = (
        shutil.which(_USER[0])
        and subprocess.run([*_USER, "true"], capture_output=True, check=False).returncode == 0
    )
    return _USER if works else pytest.skip("root cannot become another user here")


def test_a_user_without_rights_works_is_confined_and_can_undo(place: Place, scripted_server: StartServer):
    place.write("locked/a.txt", "kept\n").parent.chmod(0o555)
    place.write("closed.txt", "of nobody's business\n").chmod(0)
    place.write("out.py", "import os\nprint('user', os.getuid())\nopen('../outside.txt', 'w').write('x')\n")
    server = scripted_server(
        call("write", path="new.txt", content="new\n"),
        call("write", path="locked/new.txt", content="new\n"),
        call("read", path="closed.txt"),
        call("shell", command="echo made > made.txt; python3 out.py"),
        call("finish", answer="Done."),
    )
    place.use(server.url)
    program = (*as_user(), *AGENT)
    done = place.run("run", "-p", "Work", "--allow", "shell", "--output", "json", program=program)
    assert done.code == 0, done.err
    said = [event for event in place.sessions()[-1] if event["type"] == "tool_finished"]
    assert [event["outcome"] for event in said[:4]] == ["ok", "error", "error", "ok"]
    assert f"user {os.geteuid() or 1000}\n" in said[3]["text"]
    assert "nobody's business" not in said[2]["text"]
    assert [path.name for path in (place.workspace / "locked").iterdir()] == ["a.txt"]
    assert (place.workspace / "made.txt").exists()
    assert not (place.folder / "outside.txt").exists()
    assert place.run("undo", program=program).code == 0
    assert sorted(path.name for path in place.workspace.iterdir()) == ["closed.txt", "locked", "out.py"]
