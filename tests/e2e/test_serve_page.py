# SPDX-License-Identifier: Apache-2.0
"""The page at / of tern serve: who gets it, its headers, its bytes. Its work in a browser is tested by hand
(tests/page)."""

import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import common
from serving import Server
from test_serve import Served

PAGE = common.ROOT / "serve" / "page"
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
MOST_BYTES = 200 * 1024


def address(path):
    return "/" if path.name == "page.html" else f"/page/{path.name}"


def files():
    return sorted(PAGE.iterdir())


class Page(Served):
    def get(self, path, accept=BROWSER, method="GET", **headers):
        return self.server.ask(method, path, headers={"Accept": accept} | headers)

    def test_browsers_get_the_page_and_others_a_text(self):
        for accept in (BROWSER, "TEXT/HTML", "text/plain, text/html;q=0.5", "text/html ;level=1"):
            self.assertEqual(self.get("/", accept).headers["content-type"], TYPES[".html"], accept)
        for accept in ("*/*", "text/plain", "application/json", "", "text/html;q=0", "text/html; q=0.00, */*", "text/htmlx", "x/text/html"):
            reply = self.get("/", accept)
            self.assertEqual(reply.headers["content-type"], "text/plain; charset=utf-8", accept)
            self.assertIn(b"/v1/chat/completions", reply.body)
            self.assertIn("Accept", reply.headers["vary"])
        self.assertEqual(self.server.get("/").headers["content-type"], "text/plain; charset=utf-8")

    def test_bytes_are_those_of_the_sources(self):
        for path in files():
            reply = self.get(address(path))
            self.assertEqual((reply.status, reply.headers["content-type"]), (200, TYPES[path.suffix]), path.name)
            self.assertEqual(reply.body, path.read_bytes(), path.name)
        self.assertLess(sum(path.stat().st_size for path in files()), MOST_BYTES)

    def test_headers(self):
        for path in files():
            headers = self.get(address(path)).headers
            policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
            self.assertEqual(policy["default-src"], "'none'")
            self.assertEqual({policy[f"{kind}-src"] for kind in ("script", "style", "img", "connect")}, {"'self'"})
            for name in ("base-uri", "form-action", "frame-ancestors", "trusted-types"):
                self.assertEqual(policy[name], "'none'")
            self.assertEqual(policy["require-trusted-types-for"], "'script'")
            self.assertEqual(headers["x-content-type-options"], "nosniff")
            self.assertEqual(headers["referrer-policy"], "no-referrer")
            self.assertEqual(headers["cross-origin-opener-policy"], "same-origin")
            self.assertEqual(headers["cross-origin-resource-policy"], "same-origin")
            self.assertEqual(headers["cache-control"], "no-cache")

    def test_a_browser_that_has_a_file_does_not_get_it_again(self):
        tags = set()
        for path in files():
            tag = self.get(address(path)).headers["etag"]
            tags.add(tag)
            self.assertRegex(tag, r'^"[0-9a-f]{16}"$')
            for known in (tag, f'"other", W/{tag}', "*"):
                reply = self.get(address(path), **{"If-None-Match": known})
                self.assertEqual((reply.status, reply.body), (304, b""), known)
                self.assertEqual(reply.headers["etag"], tag)
                self.assertNotIn("content-length", reply.headers)
                self.assertIn("content-security-policy", reply.headers)
            self.assertEqual(self.get(address(path), **{"If-None-Match": '"0000000000000000"'}).status, 200)
        self.assertEqual(len(tags), len(files()))

    def test_head(self):
        for path in files():
            reply = self.get(address(path), method="HEAD")
            self.assertEqual((reply.status, reply.body), (200, b""))
            self.assertEqual(reply.headers["content-length"], str(path.stat().st_size))

    def test_only_its_files_are_there(self):
        for path in ("/page/", "/page", "/page/page.html", "/page/../serve.c", "/page/%2e%2e/page.css",
                     "/page/other.js", "/page//page.css"):
            self.assertEqual(self.get(path).status, 404, path)
        self.assertEqual(self.get("/page/page.css", method="POST").status, 405)

    def test_no_key_is_needed(self):
        with Server(env={"TERN_API_KEY": "one"}) as server:
            for path in files():
                self.assertEqual(server.get(address(path), Accept=BROWSER).status, 200)

    def test_it_is_not_part_of_the_interface(self):
        self.assertFalse([path for path in self.server.get("/openapi.json").json()["paths"] if "page" in path])
        self.assertNotIn("/page", self.server.get("/").body.decode())


def example_of(text):
    """The lines that a newcomer pastes into a shell."""
    (example,) = [part for part in text.split("\n\n") if part.lstrip().startswith("curl ")]
    return example


def pasted(lines, key=None):
    """Runs the lines in a shell and returns the output."""
    if not shutil.which("curl"):
        raise unittest.SkipTest("curl is not installed")
    if key:
        lines = lines.replace("KEY", key)
    result = subprocess.run(["sh", "-c", lines], capture_output=True, text=True)
    return result.stdout + result.stderr


class Text(common.TernTest):
    """The text at / for clients that are not browsers: its lines can be pasted as they are."""

    def text(self, server, **headers):
        return server.get("/", **headers).body.decode()

    def test_its_lines_can_be_pasted(self):
        with Server() as server:
            text = self.text(server)
            self.assertIn(f"\n  http://127.0.0.1:{server.port}/v1\n", text)
            self.assertIn('"content":"4"', pasted(example_of(text)))

    def test_with_a_key(self):
        with Server(env={"TERN_API_KEY": "one"}) as server:
            text = self.text(server)
            self.assertIn("in place of KEY", text)
            self.assertIn("not known", pasted(example_of(text)))
            self.assertIn('"content":"4"', pasted(example_of(text), key="one"))
        with Server() as server:
            self.assertNotIn("KEY", self.text(server))

    def test_by_a_socket(self):
        with tempfile.TemporaryDirectory() as folder, Server(unix=str(Path(folder, "it's a socket"))) as server:
            text = self.text(server)
            self.assertIn(f"over the socket {server.unix}:", text)
            self.assertIn('"content":"4"', pasted(example_of(text)))

    def test_the_name_that_a_client_uses(self):
        with Server("--allowed-host", "models.example.org") as server:
            for host in (f"localhost:{server.port}", "models.example.org", "[::1]:81"):
                text = self.text(server, Host=host)
                self.assertIn(f"\n  http://{host}/v1\n", text)
                self.assertIn(f"'http://{host}/v1/chat/completions'", text)
            self.assertIn('"content":"4"', pasted(example_of(self.text(server, Host=f"localhost:{server.port}"))))

    def test_a_name_that_is_none_is_not_shown(self):
        with Server() as server:
            own = self.text(server)
            for host in ("x'; reboot #", "x/v1", "user@x", "x:99999", "$HOME", "`id`", "<b>x</b>", "x y", "x" * 300, "\xe9x"):
                reply = server.get("/", Host=host)
                self.assertEqual((reply.status, b"curl" in reply.body), (400, False), host)
            reply = server.raw(b"GET / HTTP/1.0\r\n\r\n")
            self.assertTrue(reply.endswith(own.encode()), reply)


class Sources(common.FolderTest):
    """The files obey the policy: they load nothing from other hosts, and the page has no script or style in it."""

    def test_no_other_host_is_named(self):
        for path in files():
            text = path.read_text()
            for name in ("2000/svg", "1998/Math/MathML"):  # names of languages, not addresses
                text = text.replace(f"http://www.w3.org/{name}", "")
            self.assertEqual(re.findall(r"(?:https?:)?//[a-z][\w-]*\.[a-z]+", text), [], path.name)
            self.assertNotIn("url(", text.replace("new URL(", ""), path.name)

    def test_all_that_is_named_is_there(self):
        names = {path.name for path in files()}
        named = set(re.findall(r'(?:href|src)="page/([^"]+)"', (PAGE / "page.html").read_text())) | {"page.html"}
        for path in PAGE.glob("*.js"):
            named |= set(re.findall(r'from "\./([^"]+)"', path.read_text()))
        self.assertEqual(named, names)

    def test_the_page_has_no_script_or_style_of_its_own(self):
        page = (PAGE / "page.html").read_text()
        self.assertEqual(re.findall(r"<script[^>]*>[^<]", page), [])
        self.assertEqual(re.findall(r"<style|\sstyle=|\son\w+=|javascript:", page), [])

    def test_text_is_never_markup(self):
        for path in PAGE.glob("*.js"):
            found = re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|srcdoc|"
                               r"\beval\(|new Function|DOMParser|setHTML", path.read_text())
            self.assertEqual(found, [], path.name)


if __name__ == "__main__":
    common.main()
