# SPDX-License-Identifier: Apache-2.0
"""The page in a browser: questions and answers, the data that it keeps, its messages when something is wrong."""

import json
import threading

import common
from browsing import BrowserTest
from standin import Reply, answer, refusal
from other_server import delta, event
from serving import Server

QUESTION = "What is 2+2?"


class Chat(BrowserTest):
    def test_send_and_stream(self):
        page = self.at()
        self.ask(page, QUESTION)
        self.assertEqual(self.answered(page), ["4"])
        self.assertEqual(self.questions(page), [QUESTION])
        page.click("summary")
        facts = page.inner_text(".facts dl")
        self.assertRegex(facts, r"digest\n+[0-9a-f]{64}")
        self.assertRegex(facts, r"fingerprint\n+b[0-9a-f]{16}")
        self.assertIn("temperature", facts)
        self.assertRegex(page.inner_text("#room-left"), r"^\d+ of 512 positions$")
        self.assertEqual(page.inner_text("#title"), QUESTION)
        self.assertFalse(page.is_visible("#key"))  # this server asks for none

    def test_pieces_are_shown_as_they_come(self):
        hold = threading.Event()
        other = self.stand_in(Reply([event(delta("One ")), hold, *answer("two.")]))
        page = self.at(other.url)
        self.ask(page, "Count")
        self.expect(page.locator(".live .body")).to_have_text("One")
        self.assertTrue(page.is_visible("#stop"))
        self.assertFalse(page.is_visible("#send"))
        hold.set()
        self.assertEqual(self.answered(page), ["One two."])
        self.assertTrue(page.is_visible("#send"))
        self.assertEqual(other.asked[0][0]["messages"], [{"role": "user", "content": "Count"}])
        page.click("summary")
        self.assertIn("18446744073709551615", page.inner_text(".facts dl"))  # not rounded
        self.assertTrue(other.asked[0][0]["timings_per_token"])
        self.assertIn("43.2 tokens/s", page.inner_text(".facts"))  # what the server measured

    def test_a_thought_is_folded(self):
        hold = threading.Event()
        self.addCleanup(hold.set)
        other = self.stand_in(Reply([event(delta("<think>\nTwo and two")), hold, *answer(" are four.\n</think>\n\n", "It is **4**.")]), Reply(answer("Yes.")))
        page = self.at(other.url)
        self.ask(page, QUESTION)
        self.expect(page.locator(".thought summary")).to_have_text("Thinking…")
        self.assertFalse(page.get_by_text("Two and two").is_visible())
        page.click(".thought summary")
        self.assertTrue(page.get_by_text("Two and two").is_visible())
        hold.set()
        self.answered(page)
        self.assertEqual(page.inner_text(".thought summary"), "Thought")
        self.assertTrue(page.get_by_text("Two and two are four.").is_visible())  # opened once, it stays open
        self.assertEqual(page.inner_text(".assistant .body > p"), "It is 4.")
        page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
        page.locator(".assistant").get_by_role("button", name="Copy").click()
        self.until(page, "window.copied === 'It is **4**.'")
        self.ask(page, "Sure?")
        self.answered(page, 2)
        self.assertIn("<think>", other.asked[1][0]["messages"][1]["content"])  # templates take it out

    def test_stop(self):
        hold = threading.Event()
        self.addCleanup(hold.set)
        other = self.stand_in(Reply([event(delta("Never ends")), hold]))
        page = self.at(other.url)
        self.ask(page, "Go on")
        self.expect(page.locator(".live .body")).to_have_text("Never ends")
        page.click("#stop")
        self.assertEqual(self.answered(page), ["Never ends"])
        self.assertIn("Stopped here.", page.inner_text(".assistant .foot"))
        self.assertTrue(other.gone.wait(30))  # the server hears of it
        self.assertTrue(page.is_visible("#send"))

    def test_edit_a_question(self):
        other = self.stand_in(Reply(answer("First.")), Reply(answer("Second.")), Reply(answer("Third.")))
        page = self.at(other.url)
        self.ask(page, "One?")
        self.answered(page)
        self.ask(page, "Two?")
        self.answered(page, 2)
        page.locator(".user").first.get_by_role("button", name="Edit").click()
        page.keyboard.press("Control+A")
        page.keyboard.type("Other?")
        page.keyboard.press("Enter")
        self.expect(page.locator(".assistant .body")).to_have_text(["Third."])
        self.assertEqual(self.questions(page), ["Other?"])
        self.assertEqual(other.asked[2][0]["messages"], [{"role": "user", "content": "Other?"}])
        page.locator(".user").get_by_role("button", name="Earlier version").click()
        self.expect(page.locator(".assistant .body")).to_have_text(["First.", "Second."])  # nothing is lost
        page.locator(".user").first.get_by_role("button", name="Edit").click()
        page.keyboard.press("Escape")
        self.assertEqual(self.questions(page), ["One?", "Two?"])

    def test_regenerate(self):
        other = self.stand_in(Reply(answer("First.")), Reply(answer("Second.")))
        page = self.at(other.url)
        self.ask(page, "One?")
        self.answered(page)
        page.get_by_role("button", name="Regenerate").click()
        self.expect(page.locator(".assistant .body")).to_have_text(["Second."])
        self.assertEqual(page.inner_text(".assistant .pager").split(), ["‹", "2", "/", "2", "›"])
        self.assertEqual(other.asked[0][0], other.asked[1][0])
        page.get_by_role("button", name="Earlier version").click()
        self.expect(page.locator(".assistant .body")).to_have_text(["First."])

    def test_system_prompt_and_sampling(self):
        other = self.stand_in(Reply(answer("Yes.")))
        page = self.at(other.url)
        page.click("#settings")
        self.expect(page.locator("#f-max_tokens")).to_have_attribute("placeholder", "until the context is full")
        for name, value in {"system": "Be brief.", "f-temperature": "0.5", "f-top_k": "7", "f-seed": "3", "f-max_tokens": "9"}.items():
            page.fill(f"#{name}", value)
        page.get_by_role("button", name="Save").click()
        self.ask(page, "Well?")
        self.answered(page)
        body = other.asked[0][0]
        self.assertEqual(body["messages"][0], {"role": "system", "content": "Be brief."})
        self.assertEqual({k: body[k] for k in ("temperature", "top_k", "seed", "max_tokens")}, {"temperature": 0.5, "top_k": 7, "seed": 3, "max_tokens": 9})
        self.assertNotIn("top_p", body)

    def test_the_server_counts_what_was_set(self):
        page = self.at()
        page.click("#settings")
        page.fill("#f-max_tokens", "3")
        page.get_by_role("button", name="Save").click()
        self.ask(page, "Tell me a story about a small bird.")
        self.answered(page)
        self.assertIn("Ended at the limit of 3 tokens.", page.inner_text(".assistant .foot"))

    def test_a_full_context_says_both_numbers(self):
        page = self.at()
        self.ask(page, "word " * 700)
        self.expect(page.locator("#trouble .card")).to_contain_text("too long")
        self.assertRegex(page.inner_text("#trouble .card"), r"has [\d,]+ tokens, and the context has 512 positions")
        self.assertEqual(page.locator(".assistant").count(), 0)
        self.allowed = ["400"]

    def test_an_answer_that_fills_the_context_says_both_numbers(self):
        page = self.at(self.stand_in(Reply(answer("Word", reason="length", usage={"prompt_tokens": 500, "completion_tokens": 12}))).url)
        self.ask(page, "Go on")
        self.answered(page)
        self.assertIn("The context is full: 512 of 512 positions.", page.inner_text(".assistant .foot"))
        self.assertEqual(page.inner_text("#room-left"), "512 of 512 positions")

    def test_long_conversations_show_their_end_first(self):
        page = self.at()
        page.evaluate("""async () => {
            const {newConversation} = await import("/page/store.js");
            const c = newConversation();
            let parent = "";
            for (let i = 0; i < 600; i++) {
                const id = `n${i}`;
                c.nodes[id] = {id, parent, role: i % 2 ? "assistant" : "user", text: `Message **${i}**`, at: 1000 + i, info: {end: "stop"}};
                parent = id;
            }
            localStorage.setItem(`tern.chat.${c.id}`, JSON.stringify(c));
            sessionStorage.setItem("tern.shown", c.id);
        }""")
        page.reload()
        self.expect(page.locator(".message").last).to_contain_text("Message 599")
        self.assertEqual(page.locator(".message").count(), 40)
        page.click("#earlier")
        self.expect(page.locator(".message")).to_have_count(120)
        self.expect(page.locator(".message").first).to_contain_text("Message **480**")


class Kept(BrowserTest):
    def test_a_reload_keeps_it(self):
        page = self.at()
        self.ask(page, QUESTION)
        self.answered(page)
        page.reload()
        self.assertEqual(self.answered(page), ["4"])
        self.assertEqual(self.questions(page), [QUESTION])

    def test_a_reload_in_the_middle_keeps_what_came(self):
        hold = threading.Event()
        self.addCleanup(hold.set)
        other = self.stand_in(Reply([event(delta("Half an")), hold]))
        page = self.at(other.url)
        self.ask(page, "Go on")
        self.expect(page.locator(".live .body")).to_have_text("Half an")
        page.reload()
        self.expect(page.locator(".assistant .body")).to_have_text("Half an")
        self.assertRegex(page.inner_text(".assistant .foot"), "Not (finished|complete)")

    def test_several_conversations(self):
        other = self.stand_in(Reply(answer("Yes.")))
        page = self.at(other.url)
        for name in ("First question", "Second question"):
            page.click("#new")
            self.ask(page, name)
            self.answered(page)
        self.assertEqual(page.locator("#list button").all_inner_texts(), ["Second question", "First question"])
        page.locator("#list button").last.click()
        self.assertEqual(self.questions(page), ["First question"])
        page.click("#rename")
        page.fill("#rename-text", "My title")
        page.keyboard.press("Enter")
        self.expect(page.locator("#title")).to_have_text("My title")
        with page.expect_download() as download:
            page.click("#export")
        self.assertEqual(download.value.suggested_filename, "My-title.json")
        exported = json.loads(open(download.value.path()).read())
        self.assertEqual([(m["role"], m["content"]) for m in exported["messages"]], [("user", "First question"), ("assistant", "Yes.")])
        page.click("#delete")
        self.assertIn("My title", page.inner_text("#delete-text"))
        page.locator("#delete-dialog").get_by_role("button", name="Delete").click()
        self.expect(page.locator("#list button")).to_have_count(1)
        page.reload()
        self.assertEqual(page.locator("#list button").all_inner_texts(), ["Second question"])

    def test_two_tabs_keep_what_both_did(self):
        other = self.stand_in(Reply(answer("Zero.")), Reply(answer("One.")), Reply(answer("Two.")), Reply(answer("Three.")))
        page = self.at(other.url)
        self.ask(page, "Zero?")
        self.answered(page)
        second = self.at(other.url)
        second.locator("#list button").click()
        self.assertEqual(self.answered(second), ["Zero."])
        for tab, n in ((page, 2), (second, 3)):  # each asks on in the same conversation
            self.ask(tab, f"From tab {n}?")
            self.expect(tab.locator(".assistant .facts")).to_have_count(n)
        self.assertEqual(self.questions(second), ["Zero?", "From tab 2?", "From tab 3?"])
        self.expect(page.locator(".assistant .facts")).to_have_count(3)  # and the first one hears of it
        page.click("#new")
        self.ask(page, "Another?")
        self.answered(page)
        self.expect(second.locator("#list button")).to_have_count(2)

    def test_two_tabs_that_write_at_once(self):
        holds = [threading.Event(), threading.Event()]
        other = self.stand_in(Reply(answer("Zero.")), *(Reply([event(delta("Half ")), hold, *answer("whole.")]) for hold in holds))
        page = self.at(other.url)
        self.ask(page, "Zero?")
        self.answered(page)
        second = self.at(other.url)
        second.locator("#list button").click()
        self.answered(second)
        page.get_by_role("button", name="Regenerate").click()
        self.expect(page.locator(".live .body")).to_have_text("Half")
        second.locator(".assistant").first.get_by_role("button", name="Regenerate").click()
        self.expect(second.locator(".live .body")).to_have_text("Half")
        for hold in holds:
            hold.set()
        for tab in (page, second):
            self.expect(tab.locator(".pager")).to_contain_text("/ 3")
            self.answered(tab)
        third = self.at(other.url)
        third.locator("#list button").click()
        self.expect(third.locator(".pager")).to_contain_text("/ 3")

    def test_deleted_in_another_tab(self):
        other = self.stand_in(Reply(answer("Zero.")))
        page = self.at(other.url)
        self.ask(page, "Zero?")
        self.answered(page)
        second = self.at(other.url)
        second.locator("#list button").click()
        second.click("#delete")
        second.locator("#delete-dialog").get_by_role("button", name="Delete").click()
        self.expect(page.locator("#kept")).to_contain_text("deleted in another tab")
        self.expect(page.locator("#list button")).to_have_count(0)

    def test_a_full_storage_is_said(self):
        page = self.at()
        page.evaluate("""() => {
            let size = 1 << 22;
            for (let i = 0; size >= 1; i++)
                try { localStorage.setItem(`other.${i}`, "x".repeat(size)); } catch { size >>= 1; }
        }""")
        self.ask(page, QUESTION)
        self.assertEqual(self.answered(page), ["4"])
        self.assertIn("no room", page.inner_text("#kept"))

    def test_what_is_no_conversation_is_passed_over(self):
        page = self.at()
        page.evaluate("""() => {
            for (const [i, text] of ["{", "null", "[]", '{"id": 3}', '{"nodes": {"a": {}}}'].entries())
                localStorage.setItem(`tern.chat.${i}`, text);
            localStorage.setItem("tern.defaults", "[");
            localStorage.setItem("tern.theme", "<b>");
        }""")
        page.reload()
        page.wait_for_selector("#dot.good")
        self.ask(page, QUESTION)
        self.assertEqual(self.answered(page), ["4"])


class Trouble(BrowserTest):
    def refused(self, reply, text):
        other = self.stand_in(reply, Reply(answer("At last.")))
        page = self.at(other.url)
        self.ask(page, "Well?")
        self.expect(page.locator("#trouble .card")).to_contain_text(text)
        self.assertEqual(page.locator(".assistant").count(), 0)
        page.get_by_role("button", name="Retry").click()
        self.assertEqual(self.answered(page), ["At last."])
        self.assertEqual(page.locator("#trouble .card").count(), 0)
        self.allowed = [r"status of \d+"]

    def test_busy(self):
        self.refused(refusal(429, "too many requests wait already", {"Retry-After": "7"}), "wait 7 s")

    def test_ending(self):
        self.refused(refusal(503, "the server is ending", {"Retry-After": "5"}), "cannot answer now")

    def test_refused(self):
        self.refused(refusal(400, "temperature must be a number"), "temperature must be a number")

    def test_nonsense(self):
        self.refused(Reply([b"<h1>Bad gateway</h1>"], 502, kind="text/html"), "502")

    def test_a_stream_that_breaks_off(self):
        for pieces, text in (([event(delta("Some ")), event(delta("text"))], "ended before"),
                             ([event(delta("Some text")), b"data: {\n\n"], "broke off"),
                             ([event(delta("Some text")), event({"error": {"message": "the server is ending", "type": "unavailable_error"}})], "is ending")):
            with self.subTest(text=text):
                page = self.at(self.stand_in(Reply(pieces)).url, self.new_context())
                self.ask(page, "Well?")
                self.expect(page.locator("#trouble .card")).to_contain_text(text)
                self.assertEqual(page.locator(".assistant .body").all_inner_texts(), ["Some text"])  # what came is kept
                self.assertIn("Not complete", page.inner_text(".assistant .foot"))

    def test_pings_and_odd_framing(self):
        stream = b"".join(answer("Sound", " text."))
        stream = b": ping\r\n\r\n" + stream.replace(b"\n", b"\r\n").replace(b"data: {", b"event: x\r\nid: 1\r\ndata:{")
        page = self.at(self.stand_in(Reply([stream[i : i + 7] for i in range(0, len(stream), 7)])).url)
        self.ask(page, "Well?")
        self.assertEqual(self.answered(page), ["Sound text."])

    def test_a_model_that_is_gone(self):
        with Server("--alias", "first") as server:
            page = self.at(f"http://{server.host}:{server.port}/")
            self.ask(page, QUESTION)
            self.answered(page)
            server.stop()
            self.ask(page, "And 3+3?")
            self.expect(page.locator("#trouble .card")).to_contain_text("No connection")
            self.expect(page.locator("#state")).to_have_text("cannot be reached")
            with Server("--port", server.port, "--alias", "second"):
                self.expect(page.locator("#dot.good")).to_have_count(1)  # it notices by itself
                self.expect(page.locator("#model-name")).to_have_text("second")
                page.get_by_role("button", name="Retry").click()
                self.answered(page, 2)
        self.allowed = ["ERR_CONNECTION", "ERR_EMPTY", "Failed to load"]

    def test_another_model_is_served(self):
        gone = refusal(404, "the model first is not served", code="model_not_found")
        page = self.at(self.stand_in(gone, Reply(answer("Here."))).url)
        self.ask(page, "Well?")
        self.expect(page.locator("#trouble .card")).to_contain_text("The model is gone")
        page.get_by_role("button", name="Ask tern-small").click()
        self.assertEqual(self.answered(page), ["Here."])
        self.allowed = ["404"]


class Keys(BrowserTest):
    env = {"TERN_API_KEY": "secret-key"}

    def test_a_key_is_asked_for_and_kept_in_the_tab(self):
        page = self.at()
        self.expect(page.locator("#state")).to_have_text("asks for a key")
        self.ask(page, QUESTION)
        page.get_by_role("button", name="Enter the key").click()
        page.fill("#key-text", "secret-key")
        page.keyboard.press("Enter")
        self.assertEqual(self.answered(page), ["4"])
        self.assertNotIn("secret-key", page.evaluate("JSON.stringify({...localStorage})"))
        page.reload()
        page.wait_for_selector("#dot.good")
        second = self.at()
        self.expect(second.locator("#state")).to_have_text("asks for a key")
        page.click("#key")
        page.check("#key-keep")
        page.locator("#key-dialog").get_by_role("button", name="Save").click()
        second.reload()
        second.wait_for_selector("#dot.good")
        page.click("#key")
        page.fill("#key-text", "")
        page.locator("#key-dialog").get_by_role("button", name="Save").click()
        self.expect(page.locator("#state")).to_have_text("asks for a key")
        self.assertNotIn("secret-key", page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])"))
        self.allowed = ["401"]


if __name__ == "__main__":
    common.main()
