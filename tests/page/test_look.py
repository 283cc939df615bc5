# SPDX-License-Identifier: Apache-2.0
"""Tests of the page's look and of whether everybody can use it: widths, colours, keyboard, screen readers, the engine's
view."""

import os
import threading
from pathlib import Path

import common
from axe_playwright_python.sync_playwright import Axe
from browsing import PHONE, BrowserTest
from other_server import delta, event
from standin import Reply, answer, refusal

SHOTS = os.environ.get("SHOTS")
MARKDOWN = """<think>
Words stand between blanks, so it is enough to *split* a text.
</think>

A short overview, with *emphasis*, **weight**, `inline code` and a [link](https://example.org/).

## Steps
1. Read the file
2. Count what is in it
   - words
   - lines

```python
def count(path):
    return len(open(path).read().split())
```

| part | values | bits |
|:-----|-------:|-----:|
| head | 262,144 | 8 |
| layers | 2,359,296 | 1.58 |

> Three values are enough: −1, 0 and 1.

With \\(x_i \\in \\{-1, 0, 1\\}\\) and a price of $5 to $6, the mean is $\\frac{1}{n}\\sum_{i=1}^n x_i$:

\\[
f(x) = \\begin{cases} \\sqrt{\\frac{x^2+1}{2}} & \\text{if } x > 0 \\\\ \\int_0^1 t^2\\,dt & \\text{otherwise} \\end{cases}
\\]

$$\\left(\\begin{matrix}1 & 2 \\\\ 3 & 4\\end{matrix}\\right)^{-1} \\ne \\prod_{k=1}^{\\infty} \\hat{\\theta}_k, \\quad \\lim_{n\\to\\infty} \\left(1+\\frac1n\\right)^n = e$$
"""
WIDER = """() => [...document.querySelectorAll("body *")].filter(e => e.checkVisibility({visibilityProperty: true}) &&
    e.getBoundingClientRect().right > innerWidth + 1 && !e.closest("pre, .table, #side, .unseen")).map(e => e.outerHTML.slice(0, 80))"""


class Seen(BrowserTest):
    def shot(self, page, name):
        if SHOTS:
            page.screenshot(path=str(Path(SHOTS) / f"{name}.png"))

    def axe(self, page, state):
        found = Axe().run(page).response["violations"]
        problems = [(v["id"], [n["html"][:120] for n in v["nodes"]]) for v in found]
        self.assertEqual(problems, [], state)


class Look(Seen):
    def talk(self, context=None):
        other = self.stand_in(Reply(answer("An idea in one line.")), Reply(answer(MARKDOWN)))
        page = self.at(other.url, context)
        self.ask(page, "What is a ternary model?")
        self.answered(page)
        self.ask(page, "Show me how to count words, and what such a model consists of.")
        self.answered(page, 2)
        return page

    def states(self, page):
        """The page in each of its states, by name."""
        yield "chat"
        for name, data in (("notes-about-a-long-name-of-a-file.txt", b"notes"), ("image.png", b"\x89PNG\0")):
            page.set_input_files("#attach-file", {"name": name, "mimeType": "", "buffer": data})
        self.expect(page.locator("#files .warn")).to_have_count(1)
        yield "files"
        page.locator("#files button").click()
        page.click(".thought summary")
        page.locator("summary").last.click()
        page.locator(".user").last.get_by_role("button", name="Edit").click()
        yield "editing"
        page.keyboard.press("Escape")
        for name in ("settings", "rename", "delete"):
            page.click(f"#{name}")
            yield name
            page.keyboard.press("Escape")
        page.click("#tab-engine")
        self.until(page, "document.querySelector('.legend strong').textContent !== '–'")
        yield "engine"
        page.click("#tab-chat")
        if page.is_visible("#menu"):
            page.click("#menu")
            yield "conversations"
            page.keyboard.press("Escape")
        if page.is_visible("#menu"):
            page.click("#menu")
        page.click("#new")
        yield "empty"

    def test_accessible_in_light_dark_and_on_a_phone(self):
        for name, options in {"light": {}, "dark": {"color_scheme": "dark"}, "phone": {"viewport": PHONE, "has_touch": True}}.items():
            context = self.new_context(**options)
            page = self.talk(context)
            for state in self.states(page):
                self.shot(page, f"{name}-{state}")
                self.axe(page, (name, state))
                self.assertEqual(page.evaluate(WIDER), [], (name, state))
                self.assertEqual(page.evaluate("document.documentElement.scrollWidth <= innerWidth"), True, (name, state))
            context.close()

    def test_trouble_is_accessible(self):
        page = self.at(self.stand_in(refusal(429, "too many requests wait already", {"Retry-After": "7"})).url)
        self.ask(page, "Well?")
        self.expect(page.locator("#trouble .card")).to_have_attribute("role", "alert")
        self.shot(page, "light-busy")
        self.axe(page, "trouble")
        self.allowed = ["429"]

    def test_light_and_dark(self):
        ground = "getComputedStyle(document.body).backgroundColor"
        page = self.at()
        light = page.evaluate(ground)
        page.emulate_media(color_scheme="dark")
        dark = page.evaluate(ground)
        self.assertNotEqual(light, dark)
        page.click("#theme")
        self.assertEqual(page.evaluate(ground), light)
        page.reload()
        self.assertEqual(page.evaluate(ground), light)  # what was chosen is kept
        page.emulate_media(color_scheme="light")
        page.click("#theme")
        self.assertEqual(page.evaluate(ground), dark)

    def test_phone(self):
        page = self.talk(self.new_context(viewport=PHONE))
        self.assertFalse(page.is_visible("#new"))
        page.click("#menu")
        self.assertTrue(page.is_visible("#new"))
        page.click("#new")
        self.assertFalse(page.is_visible("#new"))
        page.click("#menu")
        page.locator("#list button").last.click()
        self.answered(page, 2)
        self.assertGreater(page.locator("#title").bounding_box()["width"], PHONE["width"] / 2)
        page.get_by_role("button", name="Rename").click()
        page.keyboard.press("Escape")
        page.click("#settings")
        save = page.locator("#settings-dialog").get_by_role("button", name="Save").bounding_box()
        self.assertLess(save["y"] + save["height"], PHONE["height"])  # without scrolling

    def test_a_reader_who_went_away_from_the_end_can_go_back(self):
        hold = threading.Event()
        self.addCleanup(hold.set)
        page = self.at(self.stand_in(Reply([event(delta("One.\n\n" * 60)), hold, *answer("Two.\n\n" * 60)])).url)
        place = "document.getElementById('scroll')"
        self.ask(page, "Go on")
        self.until(page, f"{place}.scrollTop > 500")  # followed
        self.assertFalse(page.is_visible("#to-end"))
        page.evaluate(f"{place}.scrollTop = 0")
        self.expect(page.locator("#to-end")).to_be_visible()
        hold.set()
        self.answered(page)
        self.assertEqual(page.evaluate(f"{place}.scrollTop"), 0)
        self.shot(page, "light-away-from-the-end")
        self.axe(page, "away from the end")
        page.click("#to-end")
        self.until(page, f"{place}.scrollHeight - {place}.scrollTop - {place}.clientHeight < 2")
        self.assertFalse(page.is_visible("#to-end"))

    def test_keyboard_only(self):
        other = self.stand_in(Reply(answer("First.")), Reply(answer("Second.")), Reply(answer("Third.")))
        page = self.at(other.url)
        focused = lambda: page.evaluate("document.activeElement.id")  # noqa: E731
        self.assertEqual(focused(), "ask")
        page.keyboard.type("One?")
        page.keyboard.press("Shift+Enter")
        page.keyboard.type("line two")
        page.keyboard.press("Enter")
        self.answered(page)
        self.assertEqual(self.questions(page), ["One?\nline two"])
        self.assertEqual(focused(), "ask")
        seen = set()
        for _ in range(60):  # every control can be reached, and left
            page.keyboard.press("Tab")
            seen.add(page.evaluate("document.activeElement.id || document.activeElement.textContent.trim().slice(0, 12)"))
        self.assertLessEqual({"new", "help", "theme", "tab-chat", "settings", "send", "ask", "rename", "export", "delete", "Edit", "Copy", "Regenerate"}, seen)
        page.locator("#messages li").first.focus()
        page.keyboard.press("r")
        self.expect(page.locator(".assistant .body")).to_have_text(["Second."])
        page.keyboard.press("e")
        page.keyboard.type(" more")
        page.keyboard.press("Enter")
        self.expect(page.locator(".assistant .body")).to_have_text(["Third."])
        page.locator("#messages li").first.focus()
        page.keyboard.press("a")
        self.assertEqual(page.evaluate("document.activeElement.classList.contains('assistant')"), True)
        page.keyboard.press("?")
        self.assertTrue(page.is_visible("#help-dialog"))
        page.uncheck("#single")
        page.keyboard.press("Escape")
        page.locator("#messages li").first.focus()
        page.keyboard.press("n")
        self.assertEqual(page.locator(".message").count(), 2)  # single keys are off
        page.focus("#tab-chat")
        page.keyboard.press("ArrowRight")
        self.assertEqual((focused(), page.is_visible("#engine")), ("tab-engine", True))
        page.keyboard.press("ArrowLeft")
        self.assertTrue(page.is_visible("#chat"))

    def test_escape_stops(self):
        hold = threading.Event()
        self.addCleanup(hold.set)
        page = self.at(self.stand_in(Reply([event(delta("Never")), hold])).url)
        self.ask(page, "Go on")
        self.expect(page.locator(".live .body")).to_have_text("Never")
        page.keyboard.press("Escape")
        self.answered(page)

    def test_screen_readers_hear_little(self):
        """Screen readers hear the beginning and the end of an answer, but not its pieces."""
        page = self.at(self.stand_in(Reply(answer(*"many small pieces of text".split(" ")))).url)
        page.evaluate("""() => {
            window.heard = [];
            new MutationObserver(() => news.textContent && heard.push(news.textContent)).observe(news, {childList: true});
        }""")
        self.ask(page, "Well?")
        self.answered(page)
        self.until(page, "heard.some(h => h.startsWith('Answer complete'))")
        heard = page.evaluate("heard")
        self.assertEqual((heard[0], len(heard)), ("The answer begins", 2))
        live = page.locator("[aria-live], [role=log], [role=alert], [role=status]")
        self.assertEqual(live.evaluate_all("all => all.map(e => e.id)"), ["news"])

    def test_the_engine_is_shown_and_asked_only_while_it_is_looked_at(self):
        page = self.at()
        asked = []
        page.on("request", lambda r: asked.append(r.url) if r.url.endswith(("/metrics", "/slots")) else None)
        page.wait_for_timeout(1500)
        self.assertEqual(asked, [])
        page.click("#tab-engine")
        self.until(page, "document.querySelector('.legend strong').textContent !== '–'")
        threads = [threading.Thread(target=self.server.complete, args=("Once upon",), kwargs={"max_tokens": 400, "ignore_eos": True, "n": 4}) for _ in range(2)]
        for thread in threads:
            thread.start()
        self.until(page, "document.querySelectorAll('#engine tbody tr').length >= 2")
        self.assertRegex(page.get_attribute(".pages", "aria-label"), r"^Of \d+ pages \d+ are used, \d+ kept, \d+ free$")
        self.shot(page, "light-engine-busy")
        for thread in threads:
            thread.join()
        self.until(page, "document.querySelectorAll('#engine tbody tr').length === 0")
        page.click("#tab-chat")
        page.wait_for_timeout(1500)
        asked.clear()
        page.wait_for_timeout(2500)
        self.assertEqual(asked, [])


class Locked(Seen):
    env = {"TERN_API_KEY": "secret-key"}

    def test_the_key_is_asked_for_accessibly(self):
        page = self.at()
        page.click("#key")
        self.shot(page, "light-key")
        self.axe(page, "key")
        self.allowed = ["401"]


if __name__ == "__main__":
    common.main()
