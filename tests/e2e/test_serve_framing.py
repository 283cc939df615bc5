# SPDX-License-Identifier: Apache-2.0
"""Requests that two readers could take apart differently, as RFC 9112 warns of them, to tern serve by both kinds of connection.

Behind each stands a request that would be answered: whoever takes the attack for sound, or finds another end of it, answers it."""

import json
import re
import unittest

import common
from serving import Server
from test_serve import Served
from test_serve_tls import make_certificate, trusting

BODY = b'{"prompt": "Once upon", "max_tokens": 1}'
N = len(BODY)
HOST = b"Host: localhost\r\n"
NEXT = b"GET /health HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (N, BODY)
LENGTH = b"Content-Length: %d\r\n" % N
CODING = b"Transfer-Encoding: chunked\r\n"


def head(*lines, first=b"POST /v1/completions HTTP/1.1\r\n"):
    return first + HOST + b"Content-Type: application/json\r\n" + b"".join(lines) + b"\r\n"


def chunked(body):
    return head(CODING) + body


SOUND = {
    "a length": head(LENGTH) + BODY,
    "chunks": head(CODING) + CHUNKED,
    "chunks with extensions": chunked(b'%x;a=b;c="d e"\r\n%s\r\n0;f\r\n\r\n' % (N, BODY)),
    "chunks with trailers": chunked(b"%x\r\n%s\r\n0\r\nA: b\r\nContent-Length: 3\r\n\r\n" % (N, BODY)),
    "zeros before": chunked(b"000%x\r\n%s\r\n00\r\n\r\n" % (N, BODY)),
    "an empty line before": b"\r\n" + head(LENGTH) + BODY,
    "other letters": head(b"content-LENGTH:\t%d \r\n" % N) + BODY,
}

# The cases follow the sections of RFC 9112 that state the rule or the danger.
ATTACKS = {
    "2.2 a line feed alone": head(LENGTH).replace(b"\r\n", b"\n") + BODY,
    "2.2 a line feed alone behind a field": head(b"A: b\n" + LENGTH) + BODY,
    "2.2 a carriage return alone in a value": head(b"A: b\rTransfer-Encoding: chunked\r\n" + LENGTH) + BODY,
    "2.2 a carriage return alone behind a value": head(b"Content-Length: %d\r\r\n" % N) + BODY,
    "2.2 blanks between the first line and the fields": head(LENGTH, first=b"POST /v1/completions HTTP/1.1\r\n ") + BODY,
    "2.2 empty lines": b"\r\n\r\n" + head(LENGTH) + BODY,
    "2.3 another version": head(LENGTH, first=b"POST /v1/completions HTTP/1.2\r\n") + BODY,
    "2.3 no version": b"GET /health\r\n\r\n",
    "3 two blanks": head(LENGTH, first=b"POST  /v1/completions HTTP/1.1\r\n") + BODY,
    "3 a tab": head(LENGTH, first=b"POST\t/v1/completions HTTP/1.1\r\n") + BODY,
    "3 a blank behind the version": head(LENGTH, first=b"POST /v1/completions HTTP/1.1 \r\n") + BODY,
    "3.2 no Host": b"GET /health HTTP/1.1\r\n\r\n",
    "3.2 two Hosts": head(HOST + LENGTH) + BODY,
    "3.2.2 another host in the target": head(LENGTH, first=b"POST http://other/v1/completions HTTP/1.1\r\n") + BODY,
    "3.2.3 a host and no path": head(LENGTH, first=b"CONNECT localhost:80 HTTP/1.1\r\n") + BODY,
    "3.2 a path without its slash": head(LENGTH, first=b"POST v1/completions HTTP/1.1\r\n") + BODY,
    "5 a zero byte in a length": head(b"Content-Length: %d\0 0\r\n" % N) + BODY,
    "5 a zero byte in a coding": head(b"Transfer-Encoding: chunked\0x\r\n") + CHUNKED,
    "5 a zero byte in another value": head(b"A: b\0c\r\n" + LENGTH) + BODY,
    "5 a zero byte in a name": head(b"A\0: b\r\n" + LENGTH) + BODY,
    "5 a vertical tab before a value": head(b"Transfer-Encoding:\x0bchunked\r\n") + CHUNKED,
    "5 a DEL in a value": head(b"A: \x7f\r\n" + LENGTH) + BODY,
    "5 no colon": head(b"A\r\n" + LENGTH) + BODY,
    "5 no name": head(b": a\r\n" + LENGTH) + BODY,
    "5.1 a blank before the colon of a coding": head(b"Transfer-Encoding : chunked\r\n" + LENGTH) + BODY,
    "5.1 a tab before the colon of a length": head(b"Content-Length\t: %d\r\n" % N) + BODY,
    "5.2 a folded value": head(b"A: b\r\n c\r\n" + LENGTH) + BODY,
    "5.2 a folded coding": head(b"Transfer-Encoding:\r\n chunked\r\n" + LENGTH) + BODY,
    "6.1 a length and a coding": head(LENGTH + CODING) + CHUNKED,
    "6.1 a coding and a length": head(CODING + LENGTH) + CHUNKED,
    "6.1 two codings": head(CODING + CODING) + CHUNKED,
    "6.1 a list of codings": head(b"Transfer-Encoding: gzip, chunked\r\n") + CHUNKED,
    "6.1 chunked twice": head(b"Transfer-Encoding: chunked, chunked\r\n") + CHUNKED,
    "6.1 not chunked": head(b"Transfer-Encoding: identity\r\n" + LENGTH) + BODY,
    "6.1 quoted": head(b'Transfer-Encoding: "chunked"\r\n') + CHUNKED,
    "6.1 a coding of HTTP/1.0": head(CODING, first=b"POST /v1/completions HTTP/1.0\r\n") + CHUNKED,
    "6.3 two equal lengths": head(LENGTH + LENGTH) + BODY,
    "6.3 two lengths": head(LENGTH + b"Content-Length: 0\r\n") + BODY,
    "6.3 a list of lengths": head(b"Content-Length: %d, %d\r\n" % (N, N)) + BODY,
    "6.3 a sign": head(b"Content-Length: +%d\r\n" % N) + BODY,
    "6.3 less than none": head(b"Content-Length: -1\r\n") + BODY,
    "6.3 hexadecimal": head(b"Content-Length: 0x%x\r\n" % N) + BODY,
    "6.3 an empty length": head(b"Content-Length:\r\n") + BODY,
    "6.3 digits and more": head(b"Content-Length: %d a\r\n" % N) + BODY,
    "6.3 too many digits": head(b"Content-Length: %020d\r\n" % N) + BODY,
    "7.1 a line feed alone behind a size": chunked(b"%x\n%s\r\n0\r\n\r\n" % (N, BODY)),
    "7.1 a line feed alone behind a chunk": chunked(b"%x\r\n%s\n0\r\n\r\n" % (N, BODY)),
    "7.1 a line feed alone at the end": chunked(b"%x\r\n%s\r\n0\n\n" % (N, BODY)),
    "7.1 a size with a blank": chunked(b"%x \r\n%s\r\n0\r\n\r\n" % (N, BODY)),
    "7.1 a size with a sign": chunked(b"+%x\r\n%s\r\n0\r\n\r\n" % (N, BODY)),
    "7.1 a size with 0x": chunked(b"0x%x\r\n%s\r\n0\r\n\r\n" % (N, BODY)),
    "7.1 a size with a zero byte": chunked(b"%x\0\r\n%s\r\n0\r\n\r\n" % (N, BODY)),
    "7.1 a size of more than 64 bits": chunked(b"1%016x\r\n%s\r\n0\r\n\r\n" % (N, BODY)),
    "7.1 no size": chunked(b"\r\n%s\r\n0\r\n\r\n" % BODY),
    "7.1 a chunk that is longer": chunked(b"%x\r\n%s\r\n0\r\n\r\n" % (N - 1, BODY)),
    "7.1 a chunk that is shorter": chunked(b"%x\r\n%s\r\n0\r\n\r\n" % (N + 1, BODY)),
    "7.1.1 a line feed in an extension": chunked(b"%x;a\n%s\r\n0\r\n\r\n" % (N, BODY)),
    "7.1.1 a zero byte in an extension": chunked(b"%x;\0\r\n%s\r\n0\r\n\r\n" % (N, BODY)),
    "7.1.1 a carriage return in an extension": chunked(b"%x;a\rb\r\n%s\r\n0\r\n\r\n" % (N, BODY)),
    "7.1.1 a byte above 127 in an extension": chunked(b"%x;\xff\r\n%s\r\n0\r\n\r\n" % (N, BODY)),
    "7.1.1 a long extension": chunked(b"%x;%s\r\n%s\r\n0\r\n\r\n" % (N, b"a" * 5000, BODY)),
    "7.1.2 a folded trailer": chunked(b"%x\r\n%s\r\n0\r\nA: b\r\n c\r\n\r\n" % (N, BODY)),
    "7.1.2 a trailer without a colon": chunked(b"%x\r\n%s\r\n0\r\nA\r\n\r\n" % (N, BODY)),
    "noise": bytes(range(256)),
}


class Framing:
    """Sends requests over one kind of connection."""

    def replies(self, request):
        """Statuses and bodies of all replies, until the server ends the connection."""
        sock = self.server.socket()
        self.addCleanup(sock.close)
        sock.sendall(request)
        received = b""
        while piece := sock.recv(65536):
            received += piece
        found = []
        while received:
            lines, end, received = received.partition(b"\r\n\r\n")
            self.assertTrue(end and re.match(rb"HTTP/1\.1 \d{3} [^\r\n]*\r\n", lines + b"\r\n"), lines)
            size = int(re.search(rb"\r\nContent-Length: (\d+)", lines)[1])
            found.append((int(lines.split()[1]), lines, received[:size]))
            received = received[size:]
        return found

    def test_sound_requests(self):
        for name, request in SOUND.items():
            with self.subTest(name):
                self.assertEqual([status for status, _, _ in self.replies(request + NEXT)], [200, 200])

    def test_attacks(self):
        """Each request is refused once, in JSON, and the bytes after it are not answered."""
        for name, request in ATTACKS.items():
            with self.subTest(name):
                [(status, lines, body)] = self.replies(request + NEXT)
                self.assertIn(status, (400, 505))
                self.assertIn(b"\r\nConnection: close", lines)
                self.assertIn(b"\r\nContent-Type: application/json", lines)
                error = json.loads(body)["error"]
                self.assertEqual((error["type"], error["param"], error["code"]), ("invalid_request_error", None, None))
                self.assertTrue(error["message"])
        self.assertEqual(self.server.get("/health").status, 200)

    def test_behind_a_sound_one(self):
        """The sound request is answered as ever; the attack behind it is refused."""
        for name in ("2.2 a line feed alone", "5 a zero byte in a length", "6.1 a length and a coding", "7.1 a line feed alone behind a size"):
            with self.subTest(name):
                found = [status for status, _, _ in self.replies(SOUND["chunks"] + ATTACKS[name] + NEXT)]
                self.assertEqual(found, [200, 400])

    def test_refusals_are_counted(self):
        """They count like requests that have no route."""
        def refused():
            return self.server.metrics().get('tern_http_replies_total{code="400"}', 0.0)

        before = refused()
        self.replies(ATTACKS["5 a zero byte in another value"])
        self.assertEqual(refused(), before + 1)


class Plain(Framing, Served):
    pass


class Tls(Framing, common.FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        common.small_model()
        certificate, key = make_certificate(cls.dir, "one")
        try:
            cls.server = Server("--tls-cert", certificate, "--tls-key", key, tls=trusting(certificate))
        except AssertionError as error:
            if "without gnutls" in str(error):
                raise unittest.SkipTest("built without TLS") from error
            raise
        cls.addClassCleanup(cls.server.stop)


if __name__ == "__main__":
    common.main()
