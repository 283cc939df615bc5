# SPDX-License-Identifier: Apache-2.0
"""tern serve over https, with certificates that the test makes."""

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import unittest
import warnings

import common
from common import suite
from serving import JSON, LONG, SLOW, Server
from test_serve import QUESTION, streamed
from test_serve_page import example_of, pasted


def make_certificate(folder, name, *options):
    """A self-signed certificate for 127.0.0.1, and its key."""
    openssl = shutil.which("openssl")
    if not openssl:
        raise unittest.SkipTest("openssl is not installed")
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate, *options],
        check=True, capture_output=True)
    return certificate, key


def trusting(certificate):
    return ssl.create_default_context(cafile=str(certificate))


class Tls(common.FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.one, cls.two = (make_certificate(cls.dir, name) for name in ("one", "two"))

    def serve(self, pair, *options, **kwargs):
        try:
            server = Server("--tls-cert", pair[0], "--tls-key", pair[1], *options, tls=trusting(pair[0]), **kwargs)
        except AssertionError as error:
            if "without gnutls" in str(error):
                self.skipTest("built without TLS")
            raise
        self.addCleanup(server.stop)
        return server

    def test_answers_and_streams(self):
        server = self.serve(self.one)
        self.assertIn("https://127.0.0.1:", server.greeting[0])
        whole = server.chat(QUESTION).json()
        events = server.chat(QUESTION, stream=True).events()
        self.assertEqual(streamed(events)[0], {0: "4"})
        self.assertEqual(events[-1]["tern"]["digest"], whole["tern"]["digest"])
        long = server.complete("Once upon", **LONG | {"max_tokens": 200}).events()
        self.assertEqual(long[-1]["choices"][0]["finish_reason"], "length")

    def test_who_does_not_trust_it_hears_nothing(self):
        server = self.serve(self.one)
        server.tls = trusting(self.two[0])
        with self.assertRaises(ssl.SSLCertVerificationError):
            server.get("/health")
        server.tls = trusting(self.one[0])
        self.assertEqual(server.get("/health").status, 200)

    def test_the_text_for_newcomers(self):
        server = self.serve(self.one)
        example = example_of(server.get("/").body.decode())
        self.assertIn(f"'https://127.0.0.1:{server.port}/v1/chat/completions'", example)
        self.assertIn('"content":"4"', pasted(example.replace("curl ", f"curl --cacert {self.one[0]} ", 1)))

    def test_plain_http_gets_nothing(self):
        server = self.serve(self.one)
        with socket.create_connection((server.host, server.port)) as sock:
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            try:
                received = sock.recv(1000)
            except ConnectionError:
                received = b""
            self.assertNotIn(b"200", received)
        self.assertEqual(server.get("/health").status, 200)

    def handshake(self, server, version):
        """Returns the version that a client agrees on when it speaks only that one, however old."""
        context = trusting(self.one[0])
        context.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version, context.maximum_version = version, version
        with socket.create_connection((server.host, server.port)) as plain:
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as secure:
                return secure.version()

    def test_old_versions_are_not_spoken(self):
        """The client is told this reason, too."""
        server = self.serve(self.one)
        for version, name in ((ssl.TLSVersion.TLSv1_2, "TLSv1.2"), (ssl.TLSVersion.TLSv1_3, "TLSv1.3")):
            self.assertEqual(self.handshake(server, version), name)
        for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
            with self.subTest(version=version.name), self.assertRaisesRegex(ssl.SSLError, "(?i)alert.protocol.version"):
                self.handshake(server, version)
        self.assertEqual(server.get("/health").status, 200)

    def test_a_client_that_left_ends_its_answer(self):
        server = self.serve(self.one, *SLOW)
        connection = server.connect()
        connection.request("POST", "/v1/completions", json.dumps({"prompt": "Once upon", "n": 8} | LONG), JSON)
        connection.getresponse().readline()
        connection.close()
        server.wait_for(lambda m: m["tern_answers_running"] == 0)
        self.assertGreater(server.metrics()['tern_answers_total{end="cancelled"}'], 0)

    def test_sighup_reads_the_certificate_again(self):
        pair = [self.dir / "now.crt", self.dir / "now.key"]

        def put(certificate, key):
            pair[0].write_bytes(certificate.read_bytes())
            pair[1].write_bytes(key.read_bytes())

        def reload(server, told):
            times = server.log().count(told)
            server.signal(signal.SIGHUP)
            suite.until(lambda: server.log().count(told) > times)

        put(*self.one)
        server = self.serve(pair)
        kept = server.connect()
        self.addCleanup(kept.close)
        kept.request("GET", "/health")
        kept.getresponse().read()
        put(self.two[0], self.one[1])  # a key that is not the certificate's
        reload(server, "the certificate stays the one that was read before")
        self.assertIn("now.key: is not the key of the certificate in", server.log())
        self.assertEqual(server.get("/health").status, 200)
        put(*self.two)
        reload(server, "SIGHUP: the certificate was read")
        with self.assertRaises(ssl.SSLCertVerificationError):
            server.get("/health")
        server.tls = trusting(self.two[0])
        self.assertEqual(server.get("/health").status, 200)
        kept.request("GET", "/health")  # a connection that began before goes on
        self.assertEqual(kept.getresponse().status, 200)

    def test_files_that_are_no_identity(self):
        text, missing, pipe = self.dir / "text", self.dir / "missing", self.dir / "pipe"
        os.mkfifo(pipe)
        text.write_text("no certificate\n")
        for certificate, key, wrong in (
            (missing, self.one[1], (missing, "No such file or directory")),
            (text, self.one[1], (text, "is not a chain of certificates")),
            (pipe, self.one[1], (pipe, "not a regular file")),
            (self.one[0], pipe, (pipe, "not a regular file")),
            (self.one[0], "/dev/zero", ("/dev/zero", "not a regular file")),
            (self.one[0], missing, (missing, "No such file or directory")),
            (self.one[0], text, (text, "is not a private key")),
            (self.one[0], self.two[1], (self.two[1], "is not the key")),
        ):
            with self.subTest(wrong=wrong):
                result = common.tern("serve", "--port", 0, "--tls-cert", certificate, "--tls-key", key)
                if b"TLS" in result.stderr:
                    self.skipTest("built without TLS")
                self.assert_one_line_error(result, contains=map(str, wrong))
        self.assert_one_line_error(common.tern("serve", "--tls-cert", text), status=2, contains=("belong together",))
        result = common.tern("serve", "--unix", self.dir / "s", "--tls-cert", *self.one[:1], "--tls-key", self.one[1])
        self.assert_one_line_error(result, status=2, contains=("--unix",))


if __name__ == "__main__":
    common.main()
