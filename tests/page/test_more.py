# SPDX-License-Identifier: Apache-2.0
"""What goes beyond a question and its answer: files, answers that go on, forms, search, import and export."""

import json
import tempfile
import zlib
from pathlib import Path

import common
from browsing import BrowserTest
from other_server import event
from standin import Reply, answer

QUESTION = "What is 2+2?"


class More(BrowserTest):
    def attach(self, page, name, data):
        page.set_input_files("#attach-file", {"name": name, "mimeType": "", "buffer": data})

    def test_files_go_with_a_question(self):
        page = self.at()
        asked = []
        page.on("request", lambda r: asked.append(json.loads(r.post_data)) if r.url.endswith("/chat/completions") else None)
        self.attach(page, "notes.txt", "Zwei ```und``` zwei".encode("utf-16"))
        self.expect(page.locator("#files li")).to_have_text("notes.txt×")
        self.attach(page, "b.md", b"b\n")
        page.click('[aria-label="Remove b.md"]')
        self.expect(page.locator("#files li")).to_have_count(1)
        self.ask(page, QUESTION)
        self.answered(page)
        self.assertEqual(asked[0]["messages"][0]["content"], f"File notes.txt:\n````\nZwei ```und``` zwei\n````\n\n{QUESTION}")
        self.assertEqual(page.inner_text(".user .files"), "notes.txt")
        self.assertFalse(page.is_visible("#files"))
        page.reload()
        self.assertEqual(page.inner_text(".user .files"), "notes.txt")

    def test_what_cannot_be_attached_is_said(self):
        page = self.at()
        for name, data, said in (("a.pdf", b"%PDF-1.7\0", "no text that can be read"), ("b.txt", b"\xff\xfe\x00\xd8", "neither a file of text"),
                                 ("e.pdf", b"%PDF-1.7 1 0 obj << >> endobj trailer << /Encrypt 2 0 R >>", "it is encrypted"),
                                 ("f.pdf", b"%PDF-1.7 1 0 obj " + b"[" * 999, "nested too deeply"),
                                 ("g.pdf", b"%PDF-1.7" + b" 1 0 obj (" * 20000, "it is damaged"),
                                 ("c.txt", b"x" * 100000, "100,000 characters, the context has room for 512 tokens"),
                                 ("d.txt", b"one two " * 900, "the context has room for 512 tokens")):
            self.attach(page, name, data)
            self.expect(page.locator("#files .warn")).to_contain_text(said)
            self.expect(page.locator("#files .warn")).to_contain_text(name)
            self.expect(page.locator("#files li:not(.warn)")).to_have_count(0)

    def test_the_text_of_a_pdf_is_attached(self):
        """One that the browser prints, with fonts of its own, and one that is written by hand."""
        writer = self.context.new_page()
        writer.set_content("<h1>A title – “quoted”</h1><p>First words, ein Käse.</p><p style='break-before: page'>Second page: x = 1</p>")
        printed = writer.pdf()
        content = zlib.compress(b"BT /F 12 Tf 50 700 Td (By \\(hand\\)) Tj 0 -14 Td [(W) 200 (ide) -400 (\\344)] TJ ET")
        written = b"%PDF-1.4\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj 2 0 obj << /Type /Pages /Kids [3 0 R] >> endobj\n" \
            b"3 0 obj << /Type /Page /Contents 5 0 R /Resources << /Font << /F 4 0 R >> >> >> endobj 4 0 obj << /Subtype /Type1 >> endobj\n" \
            b"5 0 obj << /Length 6 0 R /Filter /FlateDecode >> stream\n" + content + b"\nendstream endobj 6 0 obj %d endobj" % len(content)
        packed = zlib.compress(b"1 0 2 36 << /Type /Catalog /Pages 2 0 R >>       << /Type /Pages /Kids [3 0 R] >>")
        objects = written.replace(written[9:written.index(b"3 0 obj")], b"7 0 obj << /Type /ObjStm /N 2 /First 9 /Length %d /Filter /FlateDecode >> stream\n" % len(packed)
                                  + packed + b"\nendstream endobj\n")
        page = self.at()
        for data, text in ((printed, "A title – “quoted”\nFirst words, ein Käse.\n\nSecond page: x = 1"), (written, "By (hand)\nWide ä"), (objects, "By (hand)\nWide ä")):
            found = page.evaluate("async (data) => (await import('/page/pdf.js')).readPdf(Uint8Array.from(data))", list(data))
            self.assertEqual(found, text)
        self.attach(page, "a.pdf", written)
        self.expect(page.locator("#files li")).to_have_text("a.pdf×")

    def test_a_dropped_file_is_attached(self):
        page = self.at()
        page.evaluate("""() => {
            const data = new DataTransfer();
            data.items.add(new File(["hello"], "dropped.txt"));
            document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
        }""")
        self.expect(page.locator("#files li")).to_have_text("dropped.txt×")

    def test_an_answer_goes_on(self):
        page = self.at()
        page.click("#settings")
        page.fill("#f-max_tokens", "9")
        page.click("#settings-dialog .main")
        self.ask(page, "Once upon a time")
        (begun,) = self.answered(page)
        page.get_by_role("button", name="Continue").click()
        self.expect(page.locator(".pager span")).to_have_text("2 / 2")
        (whole,) = self.answered(page)
        self.assertGreater(len(whole), len(begun))
        self.assertTrue(whole.startswith(begun.strip()), (begun, whole))

    def test_what_goes_on_is_asked_for(self):
        other = self.stand_in(Reply(answer("One ", reason="length")), Reply(answer("two.")))
        page = self.at(other.url)
        self.ask(page, "Count")
        self.answered(page)
        page.get_by_role("button", name="Continue").click()
        self.expect(page.locator(".assistant .body")).to_have_text("One two.")
        self.answered(page)
        asked = other.asked[1][0]
        self.assertEqual(asked["messages"], [{"role": "user", "content": "Count"}, {"role": "assistant", "content": "One "}])
        self.assertEqual((asked["continue_final_message"], asked["add_generation_prompt"]), (True, False))
        self.assertEqual(page.get_by_role("button", name="Continue").count(), 0)

    def test_thoughts_that_come_by_themselves_are_folded(self):
        thought = [event({"choices": [{"index": 0, "delta": {"reasoning_content": part}}]}) for part in ("Two and ", "two.")]
        page = self.at(self.stand_in(Reply([*thought, *answer("4")])).url)
        self.ask(page, QUESTION)
        self.answered(page)
        self.assertEqual(page.inner_text(".thought summary"), "Thought")
        self.assertEqual(page.inner_text(".assistant .body > p"), "4")
        page.click(".thought summary")
        self.assertEqual(page.inner_text(".thought div"), "Two and two.")

    def test_forms_stops_and_penalties(self):
        other = self.stand_in(Reply(answer("{}")))
        page = self.at(other.url)
        page.click("#settings")
        page.fill("#schema", "{oops")
        page.click("#settings-dialog .main")
        self.assertTrue(page.is_visible("#settings-dialog"))  # the browser says why it is not taken
        page.fill("#schema", '{"type": "object"}')
        page.fill("#stops", "END\n\nStop here")
        for name, value in {"repetition_penalty": "1.1", "presence_penalty": "-0.5", "frequency_penalty": "0.25", "top_k": "40"}.items():
            page.fill(f"#f-{name}", value)
        page.click("#settings-dialog .main")
        self.ask(page, QUESTION)
        self.answered(page)
        asked = other.asked[0][0]
        self.assertEqual(asked["response_format"], {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}})
        self.assertEqual(asked["stop"], ["END", "Stop here"])
        self.assertEqual([asked[name] for name in ("repetition_penalty", "presence_penalty", "frequency_penalty", "top_k")], [1.1, -0.5, 0.25, 40])
        page.click("#settings")
        self.assertEqual(page.input_value("#stops"), "END\nStop here")
        self.assertEqual(json.loads(page.input_value("#schema")), {"type": "object"})

    def test_search(self):
        page = self.at(self.stand_in(Reply(answer("Paris, the CAPITAL"))).url)
        for question in ("What is the capital?", "Nothing"):
            page.click("#new")
            self.ask(page, question)
            self.answered(page)
        self.ask(page, "And a whale")
        self.answered(page, 2)
        for words, titles in (("WHALE", ["Nothing"]), ("paris", ["Nothing", "What is the capital?"]), ("zebra", [])):
            page.fill("#search", words)
            self.assertEqual(page.locator("#list button").all_text_contents(), titles)
            self.assertEqual(page.is_visible("#none"), titles == [])
        page.fill("#search", "")
        self.assertEqual(page.locator("#list button").count(), 2)

    def test_export_and_import_of_all(self):
        page = self.at(self.stand_in(Reply(answer("Well."))).url)
        for question in ("First", "Second"):
            page.click("#new")
            self.ask(page, question)
            self.answered(page)
        with page.expect_download() as download:
            page.click("#export-all")
        exported = json.loads(open(download.value.path()).read())
        self.assertEqual(len(exported["conversations"]), 2)
        page.evaluate("localStorage.clear()")
        page.reload()
        self.assertEqual(page.locator("#list button").count(), 0)
        exported["conversations"].append({"id": 3})
        page.set_input_files("#import-file", {"name": "a.json", "mimeType": "", "buffer": json.dumps(exported).encode()})
        self.expect(page.locator("#kept")).to_contain_text("2 conversations are imported; 1 could not be read")
        self.assertEqual(page.locator("#list button").all_text_contents(), ["Second", "First"])
        page.click("#list button >> nth=1")
        self.assertEqual(self.questions(page), ["First"])
        page.click("#delete")
        page.click("#delete-dialog .main")
        self.expect(page.locator("#list button")).to_have_count(1)
        page.set_input_files("#import-file", {"name": "a.json", "mimeType": "", "buffer": json.dumps(exported).encode()})
        self.expect(page.locator("#list button")).to_have_count(2)  # what was deleted is there again
        page.set_input_files("#import-file", {"name": "a.json", "mimeType": "", "buffer": b"no JSON"})
        self.expect(page.locator("#kept")).to_contain_text("1 could not be read")


class Several(BrowserTest):
    """A server of two models."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.other = common.synth("llama-tiny-q8_0", Path(folder.name))
        cls.options = ("-m", common.small_model(), "-m", cls.other)
        super().setUpClass()

    def test_one_is_chosen(self):
        page = self.at()
        asked = []
        page.on("request", lambda r: asked.append(json.loads(r.post_data)) if r.url.endswith("/chat/completions") else None)
        names = page.locator("#model-choice option").all_inner_texts()
        self.assertEqual(names, [common.small_model().stem, self.other.stem])
        self.assertFalse(page.is_visible("#model-name"))
        page.select_option("#model-choice", names[1])
        self.expect(page.locator("#empty-name")).to_have_text(names[1])
        self.ask(page, QUESTION)
        self.answered(page)
        page.reload()
        page.wait_for_selector("#dot.good")
        self.assertEqual(page.input_value("#model-choice"), names[1])
        page.select_option("#model-choice", names[0])
        self.expect(page.locator("#model-choice")).to_have_value(names[0])
        page.click("#new")
        self.ask(page, QUESTION)
        self.answered(page)
        self.assertEqual([body["model"] for body in asked], [names[1], names[0]])


if __name__ == "__main__":
    common.main()
