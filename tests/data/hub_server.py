"""A hub on this machine: answers what the libraries of the Hugging Face hub ask for one data set in a folder."""

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

NAME = "someone/reviews"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
GATED = "someone/gated"
"""A data set that asks for consent."""
INFO = f"/api/datasets/{NAME}"
TREE = f"{INFO}/tree/{COMMIT}"


@contextlib.contextmanager
def serve_hub(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Serve a folder as the data set `NAME`, at one commit, on the loopback interface.

    Yields:
        The address for ``HF_ENDPOINT``, and the list of what is asked, which goes on.
    """
    server = Server(folder)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server.asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Server(ThreadingHTTPServer):
    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Hub)
        self.asked: list[str] = []
        self.files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*.csv"))}

    def answer(self, place: str) -> tuple[int, bytes, dict[str, str]]:
        """Return status, content and headers of what is at a place."""
        if place in (INFO, f"{INFO}/revision/main", f"{INFO}/revision/{COMMIT}"):
            files = [{"rfilename": path} for path in self.files]
            date = "2026-11-01T00:00:00.000Z"
            return as_json({"_id": "0", "id": NAME, "sha": COMMIT, "lastModified": date, "siblings": files})
        if place == TREE:
            return as_json([listed(path, content) for path, content in self.files.items()])
        if content := self.files.get(place.removeprefix(f"/datasets/{NAME}/resolve/{COMMIT}/")):
            return 200, content, {"ETag": f'"{digest(content)}"', "X-Repo-Commit": COMMIT}
        if place.startswith(f"{INFO}/revision/"):
            return 404, b"{}", {"X-Error-Code": "RevisionNotFound"}
        if place == f"/api/datasets/{GATED}":
            return 403, b"{}", {"X-Error-Code": "GatedRepo"}
        return 404, b"{}", {"X-Error-Code": "EntryNotFound" if NAME in place else "RepoNotFound"}


class Hub(BaseHTTPRequestHandler):
    server: Server

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        place = unquote(urlsplit(self.path).path)
        self.server.asked.append(f"{self.command} {place}")
        status, content, headers = self.server.answer(place)
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Keep the terminal as it is."""


def as_json(content: object) -> tuple[int, bytes, dict[str, str]]:
    return 200, json.dumps(content).encode(), {"Content-Type": "application/json"}


def listed(path: str, content: bytes) -> dict[str, object]:
    """Return a file as the hub lists it."""
    return {"type": "file", "path": path, "oid": digest(content), "size": len(content)}


def digest(content: bytes) -> str:
    """Return the name that Git has for a file of this content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
