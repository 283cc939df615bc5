# SPDX-License-Identifier: Apache-2.0
"""Answers of a hostile server or model are shown and do nothing else."""

import json

import common
from browsing import BrowserTest
from other_server import delta, event
from standin import LAST, Reply, answer

ELSEWHERE = "http://elsewhere.example"
HOSTILE = [
    f"<script>window.hit = 1; fetch('{ELSEWHERE}/x')</script>",
    f"<img src={ELSEWHERE}/x.png onerror='window.hit = 1'>",
    f"![x]({ELSEWHERE}/x.png) ![y](data:image/svg+xml,<svg onload=alert(1)>)",
    f"<iframe src={ELSEWHERE}></iframe><object data={ELSEWHERE}></object><embed src={ELSEWHERE}>",
    f"<link rel=stylesheet href={ELSEWHERE}/x.css><style>body {{ display: none }}</style><meta http-equiv=refresh content='0;url={ELSEWHERE}'>",
    "<svg onload='window.hit = 1'><math><mtext></script><script>window.hit = 1</script>",
    "[click](javascript:window.hit=1) [b](vbscript:x) <javascript:window.hit=1> [c](data:text/html,<script>window.hit=1</script>)",
    "[d](JaVaScRiPt&#58;window.hit=1) [e](\x01javascript:window.hit=1) [f](java\tscript:window.hit=1) [g](http:javascript:window.hit=1)",
    "</div></li></ol></main><form action=//elsewhere.example><button>x</button></form>",
    "```html\n</code></pre><script>window.hit = 1</script>\n```",
    "```\" onmouseover=\"window.hit=1\nx\n```",
    "| <b onclick=window.hit=1>a</b> | [x](javascript:window.hit=1) |\n|---|---|\n| <script>window.hit=1</script> | ` `<img src=x onerror=window.hit=1>` ` |",
    "- [ ] <input autofocus onfocus='window.hit = 1'>\n- [x](javascript:window.hit=1)",
    "{{constructor.constructor('window.hit=1')()}} ${window.hit=1} \u202e\u0000\ufeff\ud7ff",
    "&lt;script&gt;window.hit=1&lt;/script&gt; %3Cscript%3E",
    "<a id=ask></a><form id=talk><input name=children></form>",
    "<think><img src=x onerror='window.hit = 1'>\n[x](javascript:window.hit=1)\n</think>\n<script>window.hit = 1</script></think>",
]
FORBIDDEN = "script, img, iframe, object, embed, link, style, meta, form, svg, math, [onclick], [onerror], [onload], [style]"


class Hostile(BrowserTest):
    def check(self, page):
        page.wait_for_timeout(200)
        self.assertIsNone(page.evaluate("window.hit ?? null"))
        self.assertEqual(page.locator(f"#messages :is({FORBIDDEN})").count(), 0)
        self.assertTrue(page.is_visible("#ask"))
        for href in page.locator("#messages a").evaluate_all("all => all.map(a => a.href)"):
            self.assertRegex(href, "^(https?|mailto):")
        for link in page.locator("#messages a").all():
            self.assertEqual((link.get_attribute("target"), link.get_attribute("rel")), ("_blank", "noopener noreferrer nofollow"))

    def test_answers(self):
        other = self.stand_in(*(Reply(answer(text[: len(text) // 2], text[len(text) // 2 :])) for text in HOSTILE))
        page = self.at(other.url)
        for i, text in enumerate(HOSTILE):
            self.ask(page, text)  # questions are shown too
            self.answered(page, i + 1)
            self.check(page)
        self.assertIn("<script>window.hit = 1;", page.locator(".assistant .body").first.text_content())
        page.reload()
        self.answered(page, len(HOSTILE))
        self.check(page)

    def test_all_that_a_server_says(self):
        """Names, digests, reasons and errors too."""
        mark = "<img src=x onerror='window.hit = 1'>"
        last = json.loads(json.dumps(LAST).replace("ab" * 32, mark).replace("b0123456789abcdef", mark))
        last["tern"]["effective"]["seed"] = mark
        last["usage"]["prompt_tokens"] = mark
        other = self.stand_in(
            Reply([event(delta("x") | {"model": mark}), event(delta(None, mark)), event({"choices": [], **last}), event("[DONE]")]),
            Reply([json.dumps({"error": {"message": mark, "type": mark, "n_ctx": mark, "n_prompt_tokens": mark}}).encode()], 400, kind="application/json"))
        page = self.at(other.url)
        self.ask(page, mark)
        self.answered(page)
        page.click("summary")
        self.check(page)
        self.assertIn(mark, page.inner_text(".facts dl"))
        self.ask(page, "again")
        self.expect(page.locator("#trouble .card")).to_be_visible()
        self.check(page)
        self.assertEqual(page.inner_text("#list button").strip(), mark)
        self.allowed = ["400"]

    def test_streams_of_nonsense(self):
        streams = [b"data: null\n\n", b"data: 5\n\n", b"data: []\n\ndata: [DONE]\n\n", b'data: {"choices": [null]}\n\n', b'data: {"choices": [{"delta": null}]}\n\n',
                   b'data: {"choices": [{"delta": {"content": 7}}]}\n\n', b"\xff\xfe\x00", b'data: {"choices": {"0": {"delta": {"content": "x"}}}}\n\n', b'data: {"error": 5}\n\n', b""]
        page = self.at(self.stand_in(*(Reply([s]) for s in streams)).url)
        for _ in streams:
            page.click("#new")
            self.ask(page, "Well?")
            page.wait_for_selector("#send:visible")
            self.check(page)
        self.ask(page, "Still there?")
        self.expect(page.locator("#send")).to_be_visible()

    def test_an_answer_that_does_not_end(self):
        """A long answer in thousands of pieces is shown in time, and the page stays usable."""
        pieces = [event(delta(f"word{i} **b** `c`\n\n" if i % 10 == 0 else f"word{i} ")) for i in range(8000)]
        page = self.at(self.stand_in(Reply([b"".join(pieces[i : i + 50]) for i in range(0, 8000, 50)] + answer("end"))).url)
        self.ask(page, "Much")
        self.assertIn("word7999", self.answered(page)[0])

    def test_the_policy_holds_where_the_page_is_wrong(self):
        page = self.at()
        found = page.evaluate("""async () => {
            const tried = [];
            const attempt = async (name, f) => { try { await f(); tried.push(name); } catch { /* forbidden */ } };
            await attempt("markup", () => { document.body.innerHTML += "x"; });
            await attempt("timer", () => setTimeout("window.hit = 1", 0));
            await attempt("fetch", () => fetch("http://elsewhere.example/"));
            await attempt("script", () => { const s = document.createElement("script"); s.textContent = "window.hit = 1"; document.body.append(s); });
            await new Promise((ok) => setTimeout(ok, 200));
            const img = document.createElement("img");
            await attempt("image", () => new Promise((ok, no) => { img.onload = ok; img.onerror = no; img.src = "http://elsewhere.example/x.png"; }));
            return [tried, window.hit ?? null];
        }""")
        self.assertEqual(found, [[], None])
        self.assertGreater(len(self.errors), 3)  # the browser names the thing that it forbids
        self.allowed = ["Content Security Policy", "Trusted"]
        self.hosts.discard("elsewhere.example")  # the browser tells of requests that it does not make

    def test_no_frame_around_it(self):
        page = self.context.new_page()
        page.route("http://127.0.0.1:9/", lambda route: route.fulfill(
            content_type="text/html", body=f"<iframe src='http://{self.server.host}:{self.server.port}/'></iframe>"))
        page.goto("http://127.0.0.1:9/")
        page.wait_for_timeout(500)
        self.assertFalse([f for f in page.frames if f.locator("#ask").count()])
        self.allowed = ["frame-ancestors", "Framing"]


if __name__ == "__main__":
    common.main()
