"""Stands in for the embedded engine's process: the same arguments, the same routes, and faults on demand.

Started as `python fake_embedded_child.py [switches] --spec FILE`.
"""

import argparse
import json
import os
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--spec", type=Path, required=True)
    parser.add_argument("--journal", type=Path, help="one line with the process id per start is added here")
    parser.add_argument("--wait-for", type=Path, help="bind only once this file exists")
    parser.add_argument("--never-healthy", action="store_true")
    parser.add_argument("--die", metavar="LINE", help="print LINE and exit with status 1")
    parser.add_argument("--die-by-signal", type=int)
    parser.add_argument("--port-taken", type=int, default=0, metavar="N", help="so many starts find it taken")
    parser.add_argument("--ignore-term", action="store_true")
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--drafted", type=int, default=0)
    parser.add_argument("--reads-at", type=float, help="tokens a second of a prompt, in what is answered")
    parser.add_argument("--sick-if", type=Path, help="answer 500 to health checks while this file exists")
    parser.add_argument("--silent-while", type=Path, help="answer nothing while this file exists")
    switches = parser.parse_args()
    spec = json.loads(switches.spec.read_text("utf-8"))
    if switches.journal:
        with switches.journal.open("a", encoding="utf-8") as journal:
            journal.write(f"{os.getpid()}\n")
    if switches.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    die_if_told(switches, spec)
    while switches.wait_for and not switches.wait_for.exists():
        time.sleep(0.02)
    server = ThreadingHTTPServer(("127.0.0.1", spec["port"]), make_handler(switches, spec))
    server.serve_forever()


def die_if_told(switches: argparse.Namespace, spec: dict) -> None:
    if switches.die_by_signal:
        os.kill(os.getpid(), switches.die_by_signal)
    if switches.die:
        sys.exit(f"0.00.001.000 E srv          init: {switches.die}")
    if switches.port_taken and len(switches.journal.read_text("utf-8").splitlines()) <= switches.port_taken:
        sys.exit(f"E srv start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: {spec['port']}")


def make_handler(switches: argparse.Namespace, spec: dict) -> type[BaseHTTPRequestHandler]:
    key = Path(spec["key_file"]).read_text("utf-8").strip()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            while switches.silent_while and switches.silent_while.exists():
                time.sleep(0.02)
            if self.path == "/health":
                sick = switches.sick_if is not None and switches.sick_if.exists()
                self.answer(503 if switches.never_healthy else 500 if sick else 200, {"status": "ok"})
            elif not self.has_key():
                self.answer(401, {"error": {"message": "Invalid API Key"}})
            elif self.path == "/props":
                context = {"n_ctx": spec["context"]}
                self.answer(200, {"default_generation_settings": context, "total_slots": spec["slots"]})
            elif self.path == "/slots":
                self.answer(200, [{"id": 0, "is_processing": switches.busy}])
            else:
                self.answer(200, {"data": []})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
            timings = {"draft_n": switches.drafted} if switches.drafted else {}
            if switches.reads_at:
                count = len(body["prompt"])
                timings |= {"prompt_n": count, "prompt_ms": 1000 * count / switches.reads_at}
            self.answer(200 if self.has_key() else 401, {"content": "x", "timings": timings})

        def has_key(self) -> bool:
            return self.headers["Authorization"] == f"Bearer {key}"

        def answer(self, status: int, body: object) -> None:
            raw = json.dumps(body).encode("utf-8")
            self.send_response(status)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *args: object) -> None:
            return

    return Handler


if __name__ == "__main__":
    main()
