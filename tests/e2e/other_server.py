# SPDX-License-Identifier: Apache-2.0
"""A small server that answers as servers of other makers do: a script of bytes for each request."""

import http.server
import json
import threading
import time


def event(document, end="\n\n", name="data: "):
    return (name + (document if isinstance(document, str) else json.dumps(document)) + end).encode()


def delta(content, reason=None, **more):
    return {"object": "chat.completion.chunk", "model": "other",
            "choices": [{"index": 0, "delta": {"content": content} | more, "finish_reason": reason}]}


MODELS = {"object": "list", "data": [{"id": "other-model", "object": "model", "permission": [{"x": None}]}]}


class OtherServer:
    """Replies to each POST with `status`, `kind` and the pieces of `pieces`, and keeps the requests. Replies begin when
    `together` requests are there. The first `full` requests are told to try again."""

    def __init__(self, pieces=(), status=200, kind="text/event-stream", headers=(), models=MODELS, pause=0.0, together=1, full=0):
        self.pieces, self.status, self.kind, self.headers = pieces, status, kind, headers
        self.models, self.pause = models, pause
        self.asked, self.seen = [], []
        self.full = full
        self.inside, self.most, self.lock, self.all = 0, 0, threading.Lock(), threading.Barrier(together)
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                outer.seen.append((self.path, dict(self.headers)))
                body = json.dumps(outer.models).encode()
                self.send_response(200 if outer.models else 404)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):
                outer.seen.append((self.path, dict(self.headers)))
                outer.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                with outer.lock:
                    outer.inside += 1
                    outer.most = max(outer.most, outer.inside)
                outer.all.wait(60)
                with outer.lock:
                    outer.inside -= 1
                    full, outer.full = outer.full > 0, outer.full - 1
                if full:
                    self.send_response(429)
                    self.send_header("Retry-After", "1")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                self.send_response(outer.status)
                self.send_header("Content-Type", outer.kind)
                self.send_header("Connection", "close")
                for name, value in outer.headers:
                    self.send_header(name, value)
                self.end_headers()
                self.close_connection = True
                try:
                    for piece in outer.pieces:
                        self.wfile.write(piece)
                        self.wfile.flush()
                        time.sleep(outer.pause)
                except OSError:
                    pass  # the client has left

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
