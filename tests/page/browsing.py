# SPDX-License-Identifier: Apache-2.0
"""A browser for a test. Every test also shows that the page had no error and asked no other host."""

import re
import time
import unittest
from urllib.parse import urlsplit

from playwright.sync_api import expect, sync_playwright
from serving import Server
from standin import StandIn

CHROMIUM = "/usr/bin/chromium"
WIDE, PHONE = {"width": 1180, "height": 760}, {"width": 360, "height": 640}
SLOW = 60000  # ms, because a loaded machine is slow


class BrowserTest(unittest.TestCase):
    """A server and a browser for the class, a fresh context (an empty storage) for each test."""

    options = ()
    env = {}

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.options, env=cls.env)
        cls.addClassCleanup(cls.server.stop)
        cls.playwright = sync_playwright().start()
        cls.addClassCleanup(cls.playwright.stop)
        cls.browser = cls.playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.errors, self.hosts = [], set()
        self.allowed = []  # patterns of errors that a test means to cause
        self.context = self.new_context()

    def tearDown(self):
        self.context.close()
        errors = [e for e in self.errors if not any(re.search(pattern, e) for pattern in self.allowed)]
        self.assertEqual(errors, [])
        self.assertLessEqual(self.hosts, {"127.0.0.1"})

    def new_context(self, **options):
        context = self.browser.new_context(**{"viewport": WIDE, "reduced_motion": "reduce"} | options)
        context.set_default_timeout(SLOW)
        context.on("request", lambda r: self.hosts.add(urlsplit(r.url).hostname or "127.0.0.1"))
        context.on("console", lambda m: m.type in ("error", "warning") and self.errors.append(m.text))
        context.on("weberror", lambda e: self.errors.append(str(e.error)))
        return context

    def at(self, url=None, context=None):
        page = (context or self.context).new_page()
        page.goto(url or f"http://{self.server.host}:{self.server.port}/")
        page.wait_for_selector("#dot.good, #dot.key")
        return page

    def stand_in(self, *replies):
        other = StandIn(self.server, *replies)
        self.addCleanup(other.__exit__)
        return other

    def ask(self, page, text):
        page.fill("#ask", text)
        page.click("#send")

    def answered(self, page, n=1):
        """Waits until n answers are shown whole; returns their texts."""
        answers = page.locator(".assistant:not(.live) .facts")
        self.expect(answers).to_have_count(n)
        return page.locator(".assistant .body").all_text_contents()

    def questions(self, page):
        return page.locator(".user .body").all_text_contents()

    def until(self, page, condition):
        """Waits for an expression of the page; not by wait_for_function, which the page's policy forbids."""
        end = time.monotonic() + SLOW / 1000
        while not page.evaluate(condition):
            self.assertLess(time.monotonic(), end, condition)
            page.wait_for_timeout(50)

    @staticmethod
    def expect(what):
        expect.set_options(timeout=SLOW)
        return expect(what)
