# SPDX-License-Identifier: Apache-2.0
"""A Hugging Face Hub of the test's own: one server knows the repositories, and another has the large files."""

import hashlib
import http.server
import json
import re
import threading

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # clients that leave


class Hub:
    """files: {"OWNER/NAME": {file: bytes}}. `large` ones are redirected to the second server, with their SHA-256.

    tls: the context with which both servers speak https."""

    def __init__(self, files, token=None, tls=None):
        self.files, self.token, self.tls = files, token, tls
        self.seen, self.stored = [], []  # (method, path, headers) of the two servers
        self.replies = []  # (status, headers) that the next questions of the Hub get in place of an answer
        self.cuts = []  # after how many bytes the next transfers break off
        self.wrong = set()  # files for which another hash is given
        self.whole = False  # ranges are not heeded
        self.moves = []  # addresses that are given for the next files, with the same path
        self.moved = {}  # old repository: new one
        self.gated = set()  # repositories whose files are refused
        self.hold = None  # an event that large files wait for in the middle
        self.commit = COMMIT
        self.hub, self.store = self._serve(self._hub), self._serve(self._store)
        self.scheme = "https" if tls else "http"
        self.url = f"{self.scheme}://127.0.0.1:{self.hub.server_port}"
        self.storing = f"{self.scheme}://127.0.0.1:{self.store.server_port}"  # the address of large files

    def stop(self):
        for server in (self.hub, self.store):
            server.shutdown()
            server.server_close()

    def _serve(self, answer):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                answer(self)

            do_HEAD = do_GET

        server = _Server(("127.0.0.1", 0), Handler)
        if self.tls:
            server.socket = self.tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    @staticmethod
    def _send(request, status, body=b"", **headers):
        request.send_response(status)
        for name, value in ({"Content-Length": len(body)} | headers).items():
            request.send_header(name.replace("_", "-"), str(value))
        request.end_headers()
        if request.command != "HEAD":
            request.wfile.write(body)

    def _hub(self, request):
        self.seen.append((request.command, request.path, dict(request.headers)))
        if self.replies:
            status, headers = self.replies.pop(0)
            return self._send(request, status, b'{"error": "said so"}', **headers)
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return self._send(request, 401, b'{"error": "Invalid username or password."}')
        api = re.fullmatch(r"/api/models/([^/]+/[^/]+)/revision/(.+)", request.path)
        if api and api[1] in self.files:
            names = [{"rfilename": name} for name in self.files[api[1]]]
            return self._send(request, 200, json.dumps({"id": api[1], "sha": self.commit, "siblings": names}).encode())
        found = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", request.path)
        if found and found[1] in self.gated:
            return self._send(request, 403, b'{"error": "Access to model is restricted."}', X_Error_Code="GatedRepo")
        if found and self.moves:
            return self._send(request, 302, Location=self.moves.pop(0) + request.path)
        if found and found[1] in self.moved:
            return self._send(request, 307, Location=f"/{self.moved[found[1]]}/resolve/{found[2]}/{found[3]}")
        body = self.files.get(found[1], {}).get(found[3]) if found else None
        if body is None:
            return self._send(request, 404, b'{"error": "Repository not found"}')
        if not found[3].endswith((".gguf", ".safetensors")):
            return self._send(request, 200, body, ETag='"%s"' % hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest())
        name = hashlib.sha256(body + (b"x" if found[3] in self.wrong else b"")).hexdigest()
        place = f"{self.storing}/{found[1]}/{found[3]}?signature=1"
        return self._send(request, 302, Location=place, ETag='"other"', X_Linked_ETag=f'"{name}"', X_Linked_Size=len(body),
                          X_Repo_Commit=self.commit)

    def _store(self, request):
        self.stored.append((request.command, request.path, dict(request.headers)))
        found = re.fullmatch(r"/([^/]+/[^/]+)/([^?]+)\?signature=1", request.path)
        body, begin = self.files[found[1]][found[2]], 0
        if "Range" in request.headers and not self.whole:
            begin = int(re.fullmatch(r"bytes=(\d+)-", request.headers["Range"])[1])
        request.send_response(206 if begin else 200)
        request.send_header("Content-Length", str(len(body) - begin))
        request.end_headers()
        end = begin + self.cuts.pop(0) if self.cuts else len(body)
        if self.hold:
            request.wfile.write(body[begin : begin + 1000])
            request.wfile.flush()
            begin += 1000
            self.hold.wait(60)
        request.wfile.write(body[begin:end])
        if end < len(body):
            request.wfile.flush()
            request.connection.close()
            request.close_connection = True
