# SPDX-License-Identifier: Apache-2.0
"""The parts of the page that need no page, called one by one in the browser."""

import json
import random
import re
import time

import common
from browsing import BrowserTest

# Markdown and the tree of its blocks, without their source; texts are not parsed in blocks.
BLOCKS = {
    "": [],
    "one\ntwo\n\nthree": [{"type": "paragraph", "text": "one\ntwo"}, {"type": "paragraph", "text": "three"}],
    "# A #\n###### B\n####### C\n#D": [
        {"type": "heading", "level": 1, "text": "A"}, {"type": "heading", "level": 6, "text": "B"}, {"type": "paragraph", "text": "####### C\n#D"}],
    "Title\n---": [{"type": "heading", "level": 2, "text": "Title"}],
    "a\n\n---\n***\n_ _ _": [{"type": "paragraph", "text": "a"}, {"type": "rule"}, {"type": "rule"}, {"type": "rule"}],
    "```c++ x\nint a;\n\n  b\n```\nafter": [{"type": "code", "language": "c++", "text": "int a;\n\n  b"}, {"type": "paragraph", "text": "after"}],
    "````\n```\n````": [{"type": "code", "language": "", "text": "```"}],
    "~~~\nnot ended": [{"type": "code", "language": "", "text": "not ended"}],
    "> a\nb\n> > c": [{"type": "quote", "blocks": [{"type": "paragraph", "text": "a\nb"}, {"type": "quote", "blocks": [{"type": "paragraph", "text": "c"}]}]}],
    "- a\n- b\n  - c\n\nafter": [
        {"type": "list", "ordered": False, "start": 1, "loose": False, "items": [
            [{"type": "paragraph", "text": "a"}],
            [{"type": "paragraph", "text": "b"}, {"type": "list", "ordered": False, "start": 1, "loose": False, "items": [[{"type": "paragraph", "text": "c"}]]}]]},
        {"type": "paragraph", "text": "after"}],
    "3. a\n\n   more\n4. b": [
        {"type": "list", "ordered": True, "start": 3, "loose": True, "items": [
            [{"type": "paragraph", "text": "a"}, {"type": "paragraph", "text": "more"}], [{"type": "paragraph", "text": "b"}]]}],
    "1. a\n  - b\n2. c": [
        {"type": "list", "ordered": True, "start": 1, "loose": False, "items": [
            [{"type": "paragraph", "text": "a"}, {"type": "list", "ordered": False, "start": 1, "loose": False, "items": [[{"type": "paragraph", "text": "b"}]]}],
            [{"type": "paragraph", "text": "c"}]]}],
    "1. code\n   ```\n   x\n   ```": [
        {"type": "list", "ordered": True, "start": 1, "loose": False, "items": [
            [{"type": "paragraph", "text": "code"}, {"type": "code", "language": "", "text": "x"}]]}],
    "born in\n1986. A year": [{"type": "paragraph", "text": "born in\n1986. A year"}],
    "| a | b\\|c |\n|---|:-:|\n| 1 |\n| 2 | 3 | 4 |\nafter": [
        {"type": "table", "sides": ["left", "center"], "head": ["a", "b|c"], "rows": [["1", ""], ["2", "3"]]}, {"type": "paragraph", "text": "after"}],
    "a | b\n---": [{"type": "heading", "level": 2, "text": "a | b"}],
    "\r\na\r\nb\r": [{"type": "paragraph", "text": "a\nb"}],
    "<div onclick=x>\n\n<script>": [{"type": "paragraph", "text": "<div onclick=x>"}, {"type": "paragraph", "text": "<script>"}],
}


# Formulas stand alone between these marks, and around an environment; what follows its end belongs to a paragraph.
BLOCKS |= {
    "so\n\\[\nx\n- y\n\\]\nand": [
        {"type": "paragraph", "text": "so"}, {"type": "formula", "text": "\nx\n- y\n"}, {"type": "paragraph", "text": "and"}],
    "$$a$$.": [{"type": "formula", "text": "a."}],
    "\\begin{align}\na\n\\end{align}": [{"type": "formula", "text": "\\begin{align}\na\n\\end{align}"}],
    "$$ not ended\n\n$$": [{"type": "paragraph", "text": "$$ not ended"}, {"type": "paragraph", "text": "$$"}],
    "$$a$$ is it": [{"type": "paragraph", "text": "$$a$$ is it"}],
}


def formula(text, display=False):
    return {"type": "formula", "text": text, "display": display}


def node(kind, *nodes, **more):
    return {"type": kind, "nodes": list(nodes)} | more


INLINE = {
    "$x*y*z$ and *a*": [formula("x*y*z"), " and ", node("em", "a")],
    "$5 and $6, US$5 and US$6, $5 million and 3$": ["$5 and $6, US$5 and US$6, $5 million and 3$"],
    "$10$, $ a$ $b $ $HOME and $PATH": [formula("10"), ", $ a$ $b $ $HOME and $PATH"],
    "\\(a_1*b*c\\) \\[a\\\\b\\] $$c$$": [formula("a_1*b*c"), " ", formula("a\\\\b", True), " ", formula("c", True)],
    "\\(not ended \\$5 and \\$6": ["(not ended $5 and $6"],
    "&lt;b&gt; &#42;a&#x2a; &foo; &amp;lt; &#0; &eacute;&pi;": ["<b> *a* &foo; &lt; \ufffd éπ"],
    "`&lt; $a$ \\(b\\)`": [{"type": "code", "text": "&lt; $a$ \\(b\\)"}],
    "plain": ["plain"],
    "*a* **b** ***c*** ~~d~~ _e_ __f__": [
        node("em", "a"), " ", node("strong", "b"), " ", node("em", node("strong", "c")), " ", node("del", "d"), " ", node("em", "e"), " ", node("strong", "f")],
    "snake_case_name 2*3*4 * a *": ["snake_case_name 2", node("em", "3"), "4 * a *"],
    "**a *b* c**": [node("strong", "a ", node("em", "b"), " c")],
    "**open *and": ["**open *and"],
    "`a` ``b ` c`` ` d": [{"type": "code", "text": "a"}, " ", {"type": "code", "text": "b ` c"}, " ` d"],
    "`*a*` *`b`*": [{"type": "code", "text": "*a*"}, " ", node("em", {"type": "code", "text": "b"})],
    r"\*a\* \q": [r"*a* \q"],
    "[a *b*](https://example.org/x \"t\") c": [node("link", "a ", node("em", "b"), href="https://example.org/x"), " c"],
    "![picture](http://example.org/p.png)": [node("link", "picture", href="http://example.org/p.png")],
    "<https://example.org/> see https://example.org/a_b_c. (http://example.org/)": [
        node("link", "https://example.org/", href="https://example.org/"), " see ", node("link", "https://example.org/a_b_c", href="https://example.org/a_b_c"),
        ". (", node("link", "http://example.org/", href="http://example.org/"), ")"],
    "[w](https://en.example.org/a_(b))": [node("link", "w", href="https://en.example.org/a_(b)")],
    "[a](javascript:alert) [b](JAVASCRIPT:x) [c](data:text/html,x) [d](//example.org) [e](file:///x) [f]( java\nscript:x)": [
        "[a](javascript:alert) [b](JAVASCRIPT:x) [c](data:text/html,x) [d](//example.org) [e](file:///x) [f]( java\nscript:x)"],
    "<b>a</b> &lt; <img src=x onerror=y>": ["<b>a</b> < <img src=x onerror=y>"],
    "a  \nb\\\nc\nd": ["a", {"type": "break"}, "b", {"type": "break"}, "c\nd"],
    "[a [b](http://b.example/) c](http://c.example/)": ["[a ", node("link", "b", href="http://b.example/"), " c](", node("link", "http://c.example/", href="http://c.example/"), ")"],
}


def bare(tree):
    """Returns the tree without the places where its nodes came from."""
    if isinstance(tree, list):
        return [bare(item) for item in tree]
    if isinstance(tree, dict):
        return {key: bare(value) for key, value in tree.items() if key not in ("raw", "depth")}
    return tree


# Answers: what was thought before them, the rest, and whether the end of the thought has not come.
THOUGHTS = {
    "Yes": (None, "Yes", False),
    "<think>\nWell\n</think>\n\nYes": ("\nWell\n", "Yes", False),
    "<think>Well": ("Well", "", True),
    " \n<think>": ("", "", True),
    "<think>\n\n</think>\n\nYes": (None, "Yes", False),
    "<think>a</think>b</think>": ("a", "b</think>", False),
    "Well\n</think>\n\nYes": ("Well\n", "Yes", False),
    "Well\n </think> \nYes\n</think>": ("Well\n", "Yes\n</think>", False),
    "The mark is `</think>` there": (None, "The mark is `</think>` there", False),
    "Say <think>, then": (None, "Say <think>, then", False),
}


def written(tree):
    """A tree of a formula as name(parts)."""
    return tree if isinstance(tree, str) else f"{tree[0]}({' '.join(written(part) for part in tree[2:])})"


class Parts(BrowserTest):
    def setUp(self):
        super().setUp()
        self.page = self.at()

    def call(self, module, name, *arguments):
        return self.page.evaluate(f"async (a) => (await import('/page/{module}.js')).{name}(...a)", list(arguments))

    def test_blocks(self):
        for text, blocks in BLOCKS.items():
            with self.subTest(text=text):
                self.assertEqual(bare(self.call("markdown", "parseBlocks", text)), blocks)

    def test_thoughts(self):
        for text, parts in THOUGHTS.items():
            with self.subTest(text=text):
                found = self.call("markdown", "splitThought", text)
                self.assertEqual((found["thought"], found["answer"], found["open"]), parts)

    def test_inline(self):
        for text, nodes in INLINE.items():
            with self.subTest(text=text):
                self.assertEqual(bare(self.call("inline", "parseInline", text)), nodes)

    def test_formulas(self):
        """The elements of a formula, written as name(parts)."""
        cases = {
            r"\frac{a}{b}": "mfrac(mi(a) mi(b))", r"\frac12": "mfrac(mn(1) mn(2))", "x^2_1": "msubsup(mi(x) mn(1) mn(2))", "x^12": "msup(mi(x) mn(1)) mn(2)",
            "x'": "msup(mi(x) mo(′))", r"\sqrt[3]{x}": "mroot(mi(x) mn(3))", r"\sqrt x": "msqrt(mi(x))",
            r"\sum_{i=1}^n": "munderover(mo(∑) mrow(mi(i) mo(=) mn(1)) mi(n))", r"\int_0^1": "msubsup(mo(∫) mn(0) mn(1))", r"\int\limits_0": "munder(mo(∫) mn(0))",
            r"\lim_{x\to 0}": "munder(mo(lim) mrow(mi(x) mo(→) mn(0)))", r"\hat x": "mover(mi(x) mo(^))", r"\alpha\Gamma": "mi(α) mi(Γ)",
            r"a-b": "mi(a) mo(−) mi(b)", r"\left(a\right)^2": "msup(mrow(mo(() mi(a) mo())) mn(2))", r"\text{if }x": "mtext(if\u00a0) mi(x)", r"\mathbb{R}": "mi(ℝ)",
            r"\begin{pmatrix}1&2\\3&4\end{pmatrix}": "mrow(mo(() mtable(mtr(mtd(mn(1)) mtd(mn(2))) mtr(mtd(mn(3)) mtd(mn(4)))) mo()))",
            r"\begin{cases}1&x\\2&y\end{cases}": "mrow(mo({) mtable(mtr(mtd(mn(1)) mtd(mi(x))) mtr(mtd(mn(2)) mtd(mi(y)))))",
            r"a\\b": "mtable(mtr(mtd(mi(a))) mtr(mtd(mi(b))))", r"\foo x": "mtext(\\foo) mi(x)", "a}b": "mi(a) mi(b)", r"\frac": "mfrac(mrow() mrow())", "{": "mrow()",
            r"<b>\text{<b>}": "mo(<) mi(b) mo(>) mtext(<b>)", r"\binom nk": "mrow(mo(() mfrac(mi(n) mi(k)) mo()))", r"\not=": "mo(≠)",
        }
        for text, expected in cases.items():
            with self.subTest(formula=text):
                self.assertEqual(written(self.call("math", "parseFormula", text)), f"mrow({expected})")
        for text, signs in (("-a", [True]), ("a-b", [False]), ("(-a)", [True]), ("(a)-b", [False]), ("a=-b+c", [True, False])):
            tree = self.call("math", "parseFormula", text)
            self.assertEqual([part[1].get("form") == "prefix" for part in tree[2:] if part[2] in ("−", "+")], signs, text)
        for text in ("{" * 200, r"\left(" * 200, r"\hat" * 200, "a" * 9000):
            self.assertIsNone(self.call("math", "parseFormula", text))

    def test_colours_of_code(self):
        cases = {
            ("python", "def f(x): # c\n 'a' + 12"): [["word", "def"], ["", " f(x): "], ["note", "# c"], ["", "\n "], ["text", "'a'"], ["", " + "], ["number", "12"]],
            ("C++", "#include <x>\nint a; /* b"): [["word", "#include"], ["", " <x>\n"], ["word", "int"], ["", " a; "], ["note", "/* b"]],
            ("sql", "Select 1"): [["word", "Select"], ["", " "], ["number", "1"]], ("html", "<a>b</a>"): [["word", "<a"], ["word", ">"], ["", "b"], ["word", "</a"], ["word", ">"]],
            ("sh", "echo \"#a\" # b"): [["word", "echo"], ["", " "], ["text", '"#a"'], ["", " "], ["note", "# b"]],
            ("klingon", "def"): [["", "def"]], ("", "def"): [["", "def"]],
        }
        for (language, text), parts in cases.items():
            with self.subTest(text=text):
                self.assertEqual(self.call("code", "colour", text, language), parts)

    def test_no_text_takes_long(self):
        """Each has 100,000 characters or more; work that grows with the square of that would take minutes."""
        hostile = ["*a " * 40000, "a* " * 40000, "*a_" * 40000, "**a *b " * 20000, "[" * 100000, "]" * 100000, "![" * 50000, "[a](" * 30000,
                   "[a](b" * 30000, "`" * 100000, "` `` ``` " * 12000, "\\" * 100000, "<" * 100000, "<http://" * 15000, "http://" * 15000,
                   "http://a.example/" + ")" * 100000, "> " * 50000, "- " * 50000, "- a\n" * 30000, "1. " * 40000, "#" * 100000 + "a", "# " + "#" * 100000 + "a",
                   "-" * 100000 + "x", "- " * 50000 + "x", "<think>" * 20000, "\n</think>x" * 20000, "|" * 100000, "a|b\n" + "-|" * 50000 + "x", "|a" * 50000 + "\n" + "|-" * 50000, "```\n" * 30000,
                   "~" * 100000, "~~a" * 40000, "\n" * 100000, " " * 100000 + "a", "a\n---\n" * 20000, "*" * 100000, "_a_" * 40000, "*a**b" * 25000,
                   "*[" * 40000 + "](http://x.example)*" * 5000, "**" * 9 + "*a*" * 30000, ("*" * 9 + "a" + "*" * 9) * 6000, "> - " * 30000,
                   "*a **b " * 8000 + "c** d*" * 8000, "*a [b " * 8000 + "c](http://x.example/) d*" * 8000,
                   "x\n" * 40000 + "=" * 9, "(" * 100000, '[a](http://x.example "' + "b" * 100000, "\t" * 50000 + "x", "| a |\n|---|\n" * 10000]
        for text in hostile:
            began = time.monotonic()
            self.page.evaluate("""async (text) => {
                const {Prose} = await import('/page/render.js');
                new Prose(document.createElement('div')).show(text);
            }""", text)
            self.assertLess(time.monotonic() - began, 30, text[:20])

    def test_random_texts_keep_their_letters(self):
        """Whatever the marks do, no word is lost or doubled."""
        draw = random.Random(7)
        marks = ["*", "**", "_", "~~", "`", "``", "[", "](http://x.example)", "![", "\n", "\n\n", "> ", "- ", "1. ", "# ", "|", "\\", "<", "    ", "```\n", " "]
        for _ in range(300):
            text = "".join(draw.choice(marks) if draw.random() < 0.5 else f"w{draw.randrange(1000)} " for _ in range(draw.randrange(60)))
            text = "\n".join(line.replace("```", "``` ") for line in text.split("\n"))  # words of a fence name its language
            shown = self.page.evaluate("""async (text) => {
                const {Prose} = await import('/page/render.js');
                const place = document.createElement('div');
                new Prose(place).show(text);
                return place.textContent;
            }""", text)
            words = re.findall(r"w\d+", text)
            for word in set(words):
                self.assertGreaterEqual(shown.count(word), 1, (text, shown))

    def test_growing_is_the_same_as_at_once(self):
        text = "# Title\n\nText *with* `marks`\n\n- a\n  - b\n\n```py\nx = 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> quote\nend"
        for before in ("", "<think>\nSome *words*\n\n1. a\n</think>\n\n", "Some words\n\n</think>\n\n", "<think></think>"):
            same = self.page.evaluate("""async (text) => {
                const {Prose} = await import('/page/render.js');
                const [grown, whole] = [document.createElement('div'), document.createElement('div')];
                const growing = new Prose(grown);
                for (let n = 0; n <= text.length; n++)
                    growing.show(text.slice(0, n), n < text.length);
                new Prose(whole).show(text);
                return grown.innerHTML === whole.innerHTML;
            }""", before + text)
            self.assertTrue(same, before)

    def test_events(self):
        cases = {
            "data: a\n\n": ["a"], "data:a\ndata: b\n\n": ["a\nb"], ": ping\n\n": [], "data: a\r\n\r\ndata: b\r\rdata: c\n\n": ["a", "b", "c"],
            "data: a\r\ndata: b\r\n\r\n": ["a\nb"],
            "event: x\ndata:  y\nid: 3\n\n": [" y"], "data\n\n": [""], "data: not ended\n": [], "\n\n\ndata: a\n\n: x\n\n": ["a"], "date: a\n\n": [],
        }
        for stream, events in cases.items():
            for size in (1, 2, 3, 100):
                pieces = [stream[i : i + size] for i in range(0, len(stream), size)]
                with self.subTest(stream=stream, size=size):
                    found = self.page.evaluate("""async (pieces) => {
                        const reader = new (await import('/page/events.js')).EventReader();
                        return pieces.flatMap((p) => reader.push(p)).concat(reader.push(""));
                    }""", pieces)
                    # a \r at the very end may be half of a line's end: the next character decides
                    self.assertEqual(found, events)

    def test_an_event_without_end_is_refused(self):
        found = self.page.evaluate("""async () => {
            const reader = new (await import('/page/events.js')).EventReader();
            try { for (let i = 0; i < 100; i++) reader.push("data: " + "x".repeat(1 << 18) + (i % 2 ? "\\n" : "")); } catch (e) { return e.message; }
        }""")
        self.assertIn("too long", found)

    def test_figures(self):
        text = self.server.get("/metrics").body.decode()
        found = self.page.evaluate("""async (text) => {
            const {parseMetrics, quantile} = await import('/page/figures.js');
            const {values, buckets} = parseMetrics(text);
            return [Object.fromEntries(values), [...buckets.keys()], quantile([[1, 2], [2, 4], [Infinity, 4]], 0.5),
                    quantile([[1, 2], [2, 4], [Infinity, 4]], 0.75), quantile([[1, 0], [Infinity, 3]], 0.5), Number.isNaN(quantile([[1, 0]], 0.5))];
        }""", text)
        self.assertEqual(found[0]["tern_answers_running"], 0)
        self.assertIn("tern_time_to_first_token_seconds", found[1])
        self.assertEqual(found[2:], [1, 1.5, 1, True])

    def test_joining_conversations(self):
        """Two copies that grew apart become one with all messages of both, whoever joins them, and with the latest
        titles and settings."""
        draw = random.Random(3)
        for _ in range(50):
            nodes = {f"n{i}": {"id": f"n{i}", "parent": "" if i == 0 else f"n{draw.randrange(i)}", "role": "user", "text": "x" * i, "at": i} for i in range(12)}
            base = {"id": "c", "title": "", "titled": 0, "system": "", "sampling": {}, "set": 0, "created": 1, "updated": 1, "picked": {}}
            split = [{k: v for k, v in nodes.items() if draw.random() < 0.7} for _ in range(2)]
            ours = base | {"nodes": split[0], "titled": 5, "title": "ours"}
            theirs = base | {"nodes": split[1], "set": 9, "system": "theirs"}
            for a, b in ((ours, theirs), (theirs, ours)):
                joined = self.call("store", "merge", a, b)
                self.assertEqual(joined["nodes"], split[0] | split[1])
                self.assertEqual((joined["title"], joined["system"]), ("ours", "theirs"))
                again = self.call("store", "merge", joined, b)
                self.assertEqual(again["nodes"], joined["nodes"])

    def test_keeping_does_not_write_over_another_tab(self):
        """This holds even when this tab has not heard yet that the other one wrote or deleted."""
        found = self.page.evaluate("""async () => {
            const {Store, newConversation, read} = await import('/page/store.js');
            const store = new Store(() => {});
            const c = newConversation();
            const key = `tern.chat.${c.id}`;
            const node = (id) => ({id, parent: "", role: "user", text: id, at: 1});
            c.nodes.a = node("a");
            const first = store.keep(c);
            const theirs = read(localStorage.getItem(key));
            theirs.nodes.b = node("b");
            localStorage.setItem(key, JSON.stringify(theirs));
            c.nodes.c = node("c");
            const second = store.keep(c);
            const kept = Object.keys(read(localStorage.getItem(key)).nodes).sort();
            localStorage.removeItem(key);
            return [first, second, kept, Object.keys(c.nodes).sort(), store.keep(c), localStorage.getItem(key)];
        }""")
        self.assertEqual(found, ["", "", ["a", "b", "c"], ["a", "b", "c"], "deleted", None])

    def test_the_number_of_conversations_has_a_limit(self):
        found = self.page.evaluate("""async () => {
            const {Store, newConversation, MOST_CONVERSATIONS} = await import('/page/store.js');
            const store = new Store(() => {});
            const all = [...Array(MOST_CONVERSATIONS + 1)].map(() => newConversation());
            const kept = all.map((c) => store.keep(c));
            const again = store.keep(all[0]);
            store.delete(all[1].id);
            return [kept.slice(0, -1).every((p) => p === ""), kept.at(-1), again, store.keep(newConversation()), MOST_CONVERSATIONS];
        }""")
        self.assertEqual(found, [True, "full", "", "", 500])

    def test_a_circle_of_messages_ends(self):
        c = {"nodes": {i: {"id": i, "parent": p, "role": "user", "text": "", "at": 1} for i, p in (("a", ""), ("b", "a"), ("a2", "b"))}, "picked": {}}
        c["nodes"]["a"]["parent"] = "a2"
        self.assertEqual(self.page.evaluate("async (c) => (await import('/page/store.js')).pathOf(c).path.length", c), 0)
        c["nodes"][""] = {"id": "", "parent": "", "role": "user", "text": "", "at": 1}
        self.assertLess(self.page.evaluate("async (c) => (await import('/page/store.js')).pathOf(c).path.length", c), 5)

    def test_only_sound_conversations_are_read(self):
        good = {"id": "c", "title": "", "titled": 0, "system": "", "sampling": {}, "set": 0, "created": 1, "updated": 1, "picked": {}, "nodes": {}}
        self.assertEqual(self.call("store", "read", json.dumps(good)), good)
        for change in ({"id": 1}, {"nodes": []}, {"nodes": {"a": {"id": "b", "parent": "", "role": "user", "text": "", "at": 1}}}, {"picked": None},
                       {"nodes": {"a": {"id": "a", "parent": "", "role": "system", "text": "", "at": 1}}}, {"updated": "x"}, {"sampling": [1]}):
            self.assertIsNone(self.call("store", "read", json.dumps(good | change)), change)


if __name__ == "__main__":
    common.main()
