# SPDX-License-Identifier: Apache-2.0
"""A server for a test: starts tern serve, asks it, and reads what it streams."""

import http.client
import json
import re
import signal
import socket
import subprocess
import tempfile
import threading

import common
from common import suite

JSON = {"Content-Type": "application/json"}
RESET = b"HTTP/1.1 400 and the connection was reset"
LONG = {"max_tokens": -1, "ignore_eos": True, "stream": True}  # as long as the context
SLOW = ("--isa", "scalar", "--no-draft")  # such answers take half a second or more, so a test meets them under way


class UnixConnection(http.client.HTTPConnection):
    """A connection to a socket in the file system."""

    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self.path)


class Reply:
    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()
        if self.status >= 400:
            common.check_says_why(self.body.decode(errors="replace"))

    def json(self):
        return json.loads(self.body)

    def events(self):
        """The documents of a stream; its end and its form are checked."""
        blocks = self.body.decode().split("\n\n")
        assert blocks.pop() == "", self.body[-200:]
        blocks = [block for block in blocks if not block.startswith(":")]
        assert all(block.startswith("data: ") and "\n" not in block for block in blocks), blocks
        assert blocks.pop() == "data: [DONE]", self.body[-200:]
        return [json.loads(block[6:]) for block in blocks]


def hear_hangups():
    """A shell that outlives its terminal starts programs with SIGHUP ignored; the tests need a server's own answer to
    it."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Server:
    """tern serve on a free port, or at unix=PATH, or where `place` says; tls is the context of its clients. `begin` are
    words before the command, and `keep` descriptors that it inherits."""

    def __init__(self, *options, unix=None, env=None, tls=None, place=None, begin=(), keep=()):
        place = place if place is not None else ("--unix", unix) if unix else ("--port", 0)
        self.unix, self.tls = unix, tls
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [*begin, *common.command("serve", *place, *options)],
            pass_fds=keep,
            env=common.clean_environment(**(env or {})),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            preexec_fn=hear_hangups,
        )
        self.greeting = [self.process.stdout.readline().decode() for _ in range(2)]
        if not self.greeting[0]:
            self.process.wait()
            raise AssertionError(f"tern serve {options}: {self.log()}")
        found = re.search(r"https?://([^:/]+):(\d+)/.*v1", self.greeting[0])
        self.host, self.port = (found[1], int(found[2])) if found else (None, None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Ends without waiting for answers under way."""
        if self.process.poll() is None:
            self.signal()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.stop()

    def log(self):
        self.errors.seek(0)
        return self.errors.read().decode()

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def stop(self):
        """Ends it if it still runs; returns its exit status."""
        if self.process.poll() is None:
            self.signal()
        status = self.process.wait()
        self.process.stdout.close()
        common.check_says_why(self.log())
        return status

    def connect(self):
        if self.unix:
            return UnixConnection(self.unix)
        if self.tls:
            return http.client.HTTPSConnection(self.host, self.port, context=self.tls)
        return http.client.HTTPConnection(self.host, self.port)

    def socket(self):
        connection = self.connect()
        connection.connect()
        return connection.sock

    def ask(self, method, path, body=None, headers=None):
        connection = self.connect()
        try:
            if body is not None and not isinstance(body, (bytes, str)):
                body = json.dumps(body)
            connection.request(method, path, body, (JSON if body is not None else {}) | (headers or {}))
            return Reply(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, **headers):
        return self.ask("GET", path, headers=headers)

    def post(self, path, headers=None, **fields):
        return self.ask("POST", path, fields, headers)

    def chat(self, message, **fields):
        return self.post("/v1/chat/completions", messages=[{"role": "user", "content": message}], **fields)

    def complete(self, prompt, **fields):
        return self.post("/v1/completions", prompt=prompt, **fields)

    def raw(self, text):
        """Returns the server's reply to bytes, until the server ends the connection or has sent a header after which it
        does not. A server that ends the connection before it has read everything may have its reply lost: that is
        RESET."""
        sock = self.socket()
        received = b""
        try:
            sock.sendall(text)
            while piece := sock.recv(65536):
                received += piece
                if b"\r\n\r\n" in received and b"Connection: close" not in received:
                    break
        except ConnectionError:
            received = received or RESET
        finally:
            sock.close()
        return received

    def metrics(self):
        """Values by name; every name once."""
        values = {}
        for line in self.get("/metrics").body.decode().splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                assert name not in values, name
                values[name] = float(value)
        return values

    def wait_for(self, condition):
        """Waits until a condition of the metrics holds."""
        suite.until(lambda: condition(self.metrics()))


def not_ready(server):
    """Returns the reason that /ready gives when the server is not ready."""
    reply = server.get("/ready")
    return reply if reply.status != 200 else None


def together(calls):
    """Makes the calls at the same time and returns their results."""
    results = [None] * len(calls)
    ready = threading.Barrier(len(calls))

    def run(i):
        ready.wait()
        results[i] = calls[i]()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
