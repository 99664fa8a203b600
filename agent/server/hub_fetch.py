"""The child process that takes one file from Hugging Face and appends it to a partial file.

Run by path with its arguments as one JSON object, and without imports of this package. It is a process
of its own so that it can be ended at any moment, and so that the program never carries the hub client's
memory. `hf_hub_download` would start again from nothing after an interruption (it keeps no partial file
since huggingface_hub 2), so the file is read from the same address with a range.

With `describe` in the order it only prints what the hub says about the file: its sha256, size and commit.
With `first_bytes` it stops after so many.

Exit status 0: the partial file is complete. Otherwise the last line on stderr is the reason.
"""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

CONNECT_SECONDS = 5.0
READ_SECONDS = 20.0
ATTEMPTS = 4


def main() -> int:
    order = json.loads(sys.argv[1])
    try:
        from huggingface_hub import hf_hub_url
        from huggingface_hub.utils import build_hf_headers, get_session
    except ImportError as error:
        return _fail(f"huggingface_hub cannot be imported: {error}")
    url = hf_hub_url(order["repo"], order["file"], revision=order["revision"])
    if order.get("describe"):
        return _describe(url)
    reason = ""
    for _ in range(ATTEMPTS):
        part = Path(order["part"])
        before = _size(part)
        try:
            reason = _append(get_session(), url, build_hf_headers(), part, order.get("first_bytes"))
        except OSError as error:
            return _fail(error.strerror or str(error))
        except Exception as error:  # whatever the HTTP client raises: it is the reason
            reason = _short(error)
        if not reason:
            return 0
        # A connection that delivered something is worth another try, one that never did is not.
        if _size(part) <= before:
            break
    return _fail(reason)


def _describe(url: str) -> int:
    from huggingface_hub import get_hf_file_metadata

    try:
        found = get_hf_file_metadata(url, timeout=READ_SECONDS)
    except Exception as error:  # whatever the HTTP client raises: it is the reason
        status = getattr(getattr(error, "response", None), "status_code", None)
        return _fail(_refusal(status) if isinstance(status, int) else _short(error))
    # The tag of a file in large storage is its sha256; small files have another one, models never are small.
    if not found.size or not re.fullmatch(r"[0-9a-f]{64}", found.etag or ""):
        return _fail("the hub names no sha256 for it")
    print(json.dumps({"sha256": found.etag, "bytes": found.size, "revision": found.commit_hash}))
    return 0


def _append(session: Any, url: str, headers: dict[str, str], part: Path, first_bytes: int | None) -> str:
    """Reads the rest of the file, or of its first bytes; the reason when the server refuses."""
    have = _size(part)
    starter = os.getppid()
    headers = {**headers, "accept-encoding": "identity"}
    if have or first_bytes:
        headers["range"] = f"bytes={have}-{first_bytes - 1 if first_bytes else ''}"
    timeout = (CONNECT_SECONDS, READ_SECONDS, READ_SECONDS, CONNECT_SECONDS)
    with session.stream("GET", url, headers=headers, timeout=timeout, follow_redirects=True) as answer:
        status = answer.status_code
        if status == 416:
            return ""
        if status not in (200, 206):
            return _refusal(status)
        with part.open("ab" if status == 206 else "wb") as file:
            # In the pieces that arrive: bigger ones would be lost with the connection.
            for chunk in answer.iter_bytes():
                # Without its starter it would go on writing into a file that the next start uses too.
                if os.getppid() != starter:
                    return "the program that wanted the file is gone"
                file.write(chunk)
                # A server may know no ranges and send all of it.
                if first_bytes and file.tell() >= first_bytes:
                    break
    return ""


def _refusal(status: int) -> str:
    if status in (401, 403):
        return f"access refused (HTTP {status}); a token in HF_TOKEN may be needed"
    return "no such file there (HTTP 404)" if status == 404 else f"HTTP {status}"


def _short(error: Exception) -> str:
    name = type(error).__name__
    if name == "OfflineModeIsEnabled":
        return "offline mode is on (HF_HUB_OFFLINE)"
    text = " ".join(str(error).split())
    return f"cannot be reached ({text or name})"[:200]


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _fail(reason: str) -> int:
    print(reason, file=sys.stderr, flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
