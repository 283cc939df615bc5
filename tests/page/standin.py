# SPDX-License-Identifier: Apache-2.0
"""A stand-in for tern serve: the page and the figures of a real one, and answers that a script gives."""

import http.client
import http.server
import json
import threading

from other_server import delta, event

LAST = {"timings": {"predicted_per_second": 43.21},
        "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12, "prompt_tokens_details": {"cached_tokens": 4}},
        "tern": {"digest": ["ab" * 32], "system_fingerprint": "b0123456789abcdef", "ignored": [],
                 "effective": {"seed": 18446744073709551615, "temperature": 0.5, "max_tokens": 3}}}


def answer(*pieces, reason="stop", usage=None):
    """The events of a whole answer."""
    chunks = [event(delta(piece)) for piece in pieces]
    last = LAST | {"usage": LAST["usage"] | (usage or {})}
    return [*chunks, event(delta(None, reason)), event({"choices": [], **last}), event("[DONE]")]


class Reply:
    """The answer to a POST: pieces of bytes; a threading.Event among them is waited for."""

    def __init__(self, pieces=(), status=200, headers=(), kind="text/event-stream"):
        self.pieces, self.status, self.headers, self.kind = list(pieces), status, dict(headers), kind


def refusal(status, message, headers=(), **more):
    body = json.dumps({"error": {"message": message, "type": "x", "param": None, "code": None} | more}).encode()
    return Reply([body], status, headers, "application/json")


class StandIn:
    """Replies to POSTs with `replies` in turn, the last one again and again; notes bodies and headers in `asked`."""

    def __init__(self, server, *replies):
        self.replies, self.asked, self.gone = list(replies), [], threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self, body=None):
                connection = http.client.HTTPConnection(server.host, server.port)
                connection.request(self.command, self.path, body, headers={k: v for k, v in self.headers.items() if k not in ("Host", "Origin")})
                reply = connection.getresponse()
                body = reply.read()
                self.send_response(reply.status)
                for name, value in reply.getheaders():
                    if name.lower() not in ("connection", "content-length"):
                        self.send_header(name, value)
                if reply.status != 304:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                connection.close()

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path == "/tokenize":  # of a file that is attached
                    self.do_GET(body)
                    return
                outer.asked.append((json.loads(body), dict(self.headers)))
                reply = outer.replies.pop(0) if len(outer.replies) > 1 else outer.replies[0]
                self.send_response(reply.status)
                self.send_header("Content-Type", reply.kind)
                self.send_header("Connection", "close")
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.close_connection = True
                self.say(reply)

            def say(self, reply):
                try:
                    for piece in reply.pieces:
                        if isinstance(piece, threading.Event):
                            while not piece.wait(0.05):  # a comment now and then shows when the client has left
                                self.wfile.write(b": ping\n\n")
                        else:
                            self.wfile.write(piece)
                            self.wfile.flush()
                except OSError:
                    outer.gone.set()

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
