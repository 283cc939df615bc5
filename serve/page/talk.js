/* SPDX-License-Identifier: Apache-2.0 */
/* The conversation that is shown, and the answers being written, also in other conversations. */

import {announce, bar, button, count, find, make, showBar} from "./dom.js";
import {endOf, MessageView} from "./message.js";
import {withFiles} from "./files.js";
import {streamChat} from "./server.js";
import {childrenOf, newId, pathOf, titleOf} from "./store.js";

const SHOWN_AT_FIRST = 40, KEEP_EVERY = 1500, NEAR_END = 120;

export class Talk {
    /* `server`: {model, context}; `events`: changed(c), kept(problem), needsKey(again), newTalk(),
     * lost(), gone(). */
    constructor(store, server, events) {
        Object.assign(this, {store, server, events});
        this.c = null;
        this.runs = new Map(); /* id of a conversation -> its answer that is being written */
        this.troubles = new Map(); /* id of a conversation -> {question, trouble} */
        this.views = new Map();
        this.most = SHOWN_AT_FIRST;
        this.follows = true;
        this.room = find("room-left");
        this.room.append(bar("Context in use"), make("span"));
        find("scroll").addEventListener("scroll", () => {
            this.follows = this.nearEnd();
            find("to-end").hidden = this.follows;
        }, {passive: true});
        find("to-end").addEventListener("click", () => this.goToEnd());
        find("earlier").addEventListener("click", () => this.showEarlier());
    }

    open(c) {
        this.c = c;
        this.views.clear();
        this.most = SHOWN_AT_FIRST;
        this.follows = true;
        this.redraw();
    }

    /* Returns the object of a conversation, into which an answer may be being written. */
    live(id) {
        return this.runs.get(id)?.c ?? (this.c?.id === id ? this.c : null);
    }

    /* ---- what is shown ---- */

    redraw() {
        const {path, children} = pathOf(this.c);
        const run = this.runs.get(this.c.id);
        const numbers = {user: 0, assistant: 0};
        const shown = path.map((node) => {
            const versions = children.get(node.parent);
            return {number: ++numbers[node.role], index: versions.indexOf(node), of: versions.length, live: run?.node === node};
        });
        const from = Math.max(0, path.length - this.most);
        const elements = path.slice(from).map((node, i) => this.viewOf(node, shown[from + i]).element);
        const list = find("messages");
        if (elements.length !== list.children.length || elements.some((e, i) => e !== list.children[i]))
            list.replaceChildren(...elements);
        list.start = from + 1;
        find("earlier").hidden = from === 0;
        find("empty").hidden = path.length > 0;
        find("title").textContent = titleOf(this.c);
        find("stop").hidden = run === undefined;
        find("send").hidden = run !== undefined;
        this.drawTrouble();
        this.drawRoom(path);
        this.scroll();
    }

    viewOf(node, shown) {
        let view = this.views.get(node.id);
        if (view === undefined) {
            view = new MessageView(node, {edit: (n, text) => this.edit(n, text), again: (n) => this.again(n), goOn: (n) => this.goOn(n),
                                          step: (n, by) => this.step(n, by), redraw: (n) => this.redrawNode(n)});
            this.views.set(node.id, view);
        }
        view.show(node, shown);
        return view;
    }

    redrawNode(node) {
        this.redraw();
        this.views.get(node.id)?.element.focus();
    }

    showEarlier() {
        const s = find("scroll");
        const fromEnd = s.scrollHeight - s.scrollTop;
        this.most += 2 * SHOWN_AT_FIRST;
        this.follows = false;
        this.redraw();
        s.scrollTop = s.scrollHeight - fromEnd;
        find("messages").firstElementChild?.focus({preventScroll: true});
    }

    /* True if the end is in view. */
    nearEnd() {
        const s = find("scroll");
        return s.scrollHeight - s.scrollTop - s.clientHeight < NEAR_END;
    }

    /* Follows the end while it grows, unless the reader has scrolled away from it. */
    scroll() {
        if (this.follows)
            find("scroll").scrollTop = find("scroll").scrollHeight;
        find("to-end").hidden = this.follows || this.nearEnd();
    }

    goToEnd() {
        this.follows = true;
        this.scroll();
        find("scroll").focus({preventScroll: true});
    }

    drawRoom(path) {
        const last = path.findLast((node) => node.info?.context > 0);
        this.room.hidden = last === undefined;
        if (last === undefined)
            return;
        const used = last.info.prompt + last.info.tokens;
        showBar(this.room.firstChild, used, last.info.context);
        this.room.lastChild.textContent = `${count(used)} of ${count(last.info.context)} positions`;
    }

    drawTrouble() {
        const place = find("trouble");
        const held = this.troubles.get(this.c.id);
        if (held?.card !== undefined && held.card === place.firstChild)
            return;
        place.replaceChildren();
        if (held === undefined)
            return;
        held.card = this.card(held);
        place.append(held.card);
    }

    card({question, trouble}) {
        const [head, what] = this.wordsOf(trouble);
        const retry = () => this.answer(this.c, this.c.nodes[question]);
        const ends = make("div", {class: "ends"});
        if (trouble.kind === "key")
            ends.append(button("Enter the key", () => this.events.needsKey(retry), {class: "main"}));
        else if (trouble.kind === "context")
            ends.append(button("New conversation", () => this.events.newTalk(), {class: "main"}));
        ends.append(button(trouble.kind === "model" ? `Ask ${this.server.model}` : "Retry", retry,
                           {class: ends.childElementCount === 0 ? "main" : null}));
        return make("div", {class: "card", role: "alert"}, make("strong", {}, head), make("p", {}, what), ends);
    }

    wordsOf(t) {
        const wait = t.retry > 0 ? ` It asks to wait ${t.retry} s.` : "";
        switch (t.kind) {
        case "network":
            return ["No connection", `${t.message} The question is kept; try again when the server is there.`];
        case "key":
            return ["A key is needed", `The server says: ${t.message}.`];
        case "limit":
            return ["The server is busy", `It says: ${t.message}.${wait}`];
        case "ending":
            return ["The server cannot answer now", `It says: ${t.message}.${wait}`];
        case "model":
            return ["The model is gone", `The server says: ${t.message}. It serves ${this.server.model} now.`];
        case "context":
            return ["The conversation is too long", `It has ${count(t.numbers.n_prompt_tokens)} tokens, and the context has ` +
                    `${count(t.numbers.n_ctx)} positions. Edit an earlier question, shorten the system prompt, or begin a new conversation.`];
        default:
            return ["The server refused", `It says: ${t.message}.`];
        }
    }

    /* ---- what is done ---- */

    add(c, parent, role, text) {
        const node = {id: newId(), parent, role, text, at: Date.now()};
        c.nodes[node.id] = node;
        c.picked[parent] = node.id;
        c.updated = node.at;
        return node;
    }

    send(text, files = []) {
        const c = this.c;
        if (this.runs.has(c.id) || (text.trim() === "" && files.length === 0))
            return false;
        const {path} = pathOf(c);
        const question = this.add(c, path.at(-1)?.id ?? "", "user", text);
        if (files.length > 0)
            question.files = files;
        this.keep(c);
        this.follows = true;
        this.answer(c, question);
        return true;
    }

    edit(node, text) {
        this.stop();
        const question = this.add(this.c, node.parent, "user", text);
        if (node.files !== undefined)
            question.files = node.files;
        this.keep(this.c);
        this.follows = true;
        this.answer(this.c, question);
    }

    again(node) {
        this.stop();
        this.follows = true;
        this.answer(this.c, this.c.nodes[node.parent]);
    }

    /* Goes on with an answer that a limit has ended, as another version of it. */
    goOn(node) {
        this.stop();
        this.follows = true;
        this.answer(this.c, this.c.nodes[node.parent], node.text);
    }

    step(node, by) {
        const versions = childrenOf(this.c).get(node.parent);
        const other = versions[versions.indexOf(node) + by];
        if (other === undefined)
            return;
        this.c.picked[node.parent] = other.id;
        this.keep(this.c);
        this.follows = false;
        this.redraw();
        this.views.get(other.id)?.element.focus();
    }

    stop(id = this.c.id) {
        this.runs.get(id)?.controller.abort();
    }

    /* Stores a conversation. `told`: tells the rest of the page that it changed. */
    keep(c, told = true) {
        const problem = this.store.keep(c);
        this.events.kept(problem);
        if (problem === "deleted") {
            this.stop(c.id);
            this.events.gone(c);
        }
        if (told)
            this.events.changed(c);
    }

    /* ---- an answer ---- */

    bodyFor(c, question, begun) {
        const messages = c.system.trim() === "" ? [] : [{role: "system", content: c.system}];
        const asked = [];
        for (let node = question; node !== undefined && asked.length <= 100000; node = c.nodes[node.parent])
            asked.push(node);
        for (const node of asked.reverse())
            if (node.text !== "" || node.files !== undefined)
                messages.push({role: node.role, content: withFiles(node)});
        const more = begun === "" ? {} : {continue_final_message: true, add_generation_prompt: false};
        if (begun !== "")
            messages.push({role: "assistant", content: begun});
        return {model: this.server.model, messages, ...c.sampling, ...more, stream: true,
            stream_options: {include_usage: true}, timings_per_token: true};
    }

    /* `begun`: the answer's beginning, which is there. */
    async answer(c, question, begun = "") {
        if (this.runs.has(c.id))
            await this.runs.get(c.id).over;
        if (question === undefined || this.runs.has(c.id))
            return;
        const run = {c, begun, controller: new AbortController(), pieces: 0, asked: performance.now(), kept: 0, frame: 0, end: null};
        run.over = new Promise((resolve) => (run.resolve = resolve));
        this.runs.set(c.id, run);
        this.troubles.delete(c.id);
        run.node = this.add(c, question.id, "assistant", begun);
        if (this.c === c)
            this.redraw();
        this.events.changed(c);
        await this.write(run, question);
        this.runs.delete(c.id);
        run.resolve();
        this.finish(run);
    }

    async write(run, question) {
        const {c, node} = run;
        try {
            for await (const event of streamChat(this.bodyFor(c, question, run.begun), run.controller.signal))
                this.take(run, event);
            node.info = this.infoOf(run, run.end ?? "stop");
        } catch (e) {
            const stopped = run.controller.signal.aborted;
            if (!stopped)
                await this.events.lost(e);
            if (node.text !== run.begun) {
                node.info = this.infoOf(run, stopped ? "stopped" : "broken", e.message);
            } else {
                delete c.nodes[node.id];
                delete c.picked[question.id];
            }
            if (!stopped)
                this.troubles.set(c.id, {question: question.id, trouble: e});
        }
    }

    take(run, event) {
        const choice = event.choices?.[0];
        const piece = this.pieceOf(run, choice?.delta);
        run.model = event.model ?? run.model;
        run.usage = event.usage ?? run.usage;
        run.tern = event.tern ?? run.tern;
        run.pace = event.timings?.predicted_per_second ?? run.pace;
        run.end = choice?.finish_reason ?? run.end;
        if (typeof piece !== "string" || piece === "")
            return;
        run.last = performance.now();
        run.first ??= run.last;
        if (run.pieces++ === 0)
            announce("The answer begins");
        run.node.text += piece;
        if (run.last - run.kept > KEEP_EVERY) {
            run.kept = run.last;
            this.keep(run.c, false);
        }
        if (run.frame === 0)
            run.frame = requestAnimationFrame(() => this.drawPiece(run));
    }

    /* The text of a piece; a model's thoughts stand between the marks of markdown.js. */
    pieceOf(run, delta) {
        const thought = delta?.reasoning_content, said = delta?.content;
        let piece = "";
        if (typeof thought === "string" && thought !== "") {
            piece += `${run.thinks ? "" : "<think>\n"}${thought}`;
            run.thinks = true;
        }
        if (typeof said === "string" && said !== "") {
            piece += `${run.thinks ? "\n</think>\n\n" : ""}${said}`;
            run.thinks = false;
        }
        return piece;
    }

    drawPiece(run) {
        run.frame = 0;
        const view = this.c === run.c ? this.views.get(run.node.id) : undefined;
        if (view === undefined || !this.runs.has(run.c.id))
            return;
        view.node = run.node;
        view.showText(true);
        const rate = (1000 * (run.pieces - 1)) / (run.last - run.first);
        view.rate.textContent = `${count(run.pieces)}${Number.isFinite(rate) ? ` · ${rate.toFixed(1)} tokens/s` : ""}`;
        this.scroll();
    }

    /* The rate is the server's: pieces that waited in a busy browser seem to come at once. */
    infoOf(run, end, why) {
        const usage = run.usage, tern = run.tern;
        const decoding = (run.last - run.first) / 1000;
        const tokens = usage?.completion_tokens ?? NaN;
        const n = Number.isFinite(tokens) ? tokens : run.pieces;
        return JSON.parse(JSON.stringify({
            end, why: end === "broken" ? why : undefined, model: run.model, tokens: usage ? tokens : undefined,
            prompt: usage?.prompt_tokens, cached: usage?.prompt_tokens_details?.cached_tokens,
            context: usage ? this.server.context : undefined,
            first: run.first === undefined ? undefined : (run.first - run.asked) / 1000,
            whole: (performance.now() - run.asked) / 1000, rate: run.pace ?? (n > 1 && decoding > 0 ? (n - 1) / decoding : undefined),
            effective: tern?.effective, digest: tern?.digest?.[0], fingerprint: tern?.system_fingerprint,
        }));
    }

    finish(run) {
        const {c, node} = run;
        c.updated = Date.now();
        this.keep(c);
        if (this.c === c)
            this.redraw();
        if (node.info?.end === "stopped" || run.controller.signal.aborted)
            announce("Stopped");
        else if (node.info && node.info.end !== "broken")
            announce(`Answer complete. ${endOf(node.info) ?? ""}`);
    }
}
