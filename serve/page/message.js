/* SPDX-License-Identifier: Apache-2.0 */
/* A message on the page: its text, its buttons, and the facts about how it was made. */

import {button, copyButton, count, make, seconds} from "./dom.js";
import {fileList} from "./files.js";
import {splitThought} from "./markdown.js";
import {Prose} from "./render.js";

const NAMES = {seed: "seed", max_tokens: "most tokens", temperature: "temperature", top_p: "top p", top_k: "top k",
               min_p: "min p", presence_penalty: "presence penalty", frequency_penalty: "frequency penalty",
               repetition_penalty: "repetition penalty", repeat_last_n: "looks back", ignore_eos: "ignores the end"};

const speedOf = (info) => (info.rate > 0 ? `${info.rate.toFixed(info.rate < 10 ? 2 : 1)} tokens/s` : null);

/* Returns the line under an answer. */
function summaryOf(info) {
    const tokens = Number.isFinite(info.tokens) ? `${count(info.tokens)} token${info.tokens === 1 ? "" : "s"}` : null;
    return [tokens, speedOf(info)].filter(Boolean).join(" · ") || "Details";
}

/* Returns why an answer ended, unless the model ended it. */
export function endOf(info) {
    if (info.end === "stopped")
        return "Stopped here.";
    if (info.end === "broken")
        return `Not complete: ${info.why}`;
    if (info.end !== "length")
        return null;
    if (info.context > 0 && info.prompt + info.tokens >= info.context)
        return `The context is full: ${count(info.prompt + info.tokens)} of ${count(info.context)} positions. ` +
            "Edit an earlier question, or begin a new conversation.";
    return `Ended at the limit of ${count(info.effective?.max_tokens ?? info.tokens)} tokens.`;
}

/* True if an answer was ended by a limit, or stopped, and there is room for more of it. */
function canGoOn(info) {
    const full = info.context > 0 && info.prompt + info.tokens >= info.context;
    return ["length", "stopped", "broken"].includes(info.end) && !full;
}

function factsOf(info) {
    const rows = [];
    const add = (name, value) => value !== null && value !== undefined && value !== "" && rows.push([name, String(value)]);
    add("model", info.model);
    add("tokens of the prompt", Number.isFinite(info.prompt) ? `${count(info.prompt)}, ${count(info.cached)} of them in the cache` : null);
    add("tokens of the answer", Number.isFinite(info.tokens) ? count(info.tokens) : null);
    add("to the first token", Number.isFinite(info.first) ? seconds(info.first) : null);
    add("all of it", Number.isFinite(info.whole) ? seconds(info.whole) : null);
    for (const [name, value] of Object.entries(info.effective ?? {}))
        if (name in NAMES)
            add(NAMES[name], name === "max_tokens" && value === -1 ? "until the context is full" : value);
    add("digest", info.digest);
    add("fingerprint", info.fingerprint);
    return rows;
}

function details(info) {
    const rows = factsOf(info).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]);
    return make("details", {class: "facts"}, make("summary", {}, summaryOf(info)), make("dl", {}, ...rows));
}

/*
 * `acts` are the actions on a message: edit(node, text), again(node), goOn(node), step(node, -1 or 1). show()
 * gets `shown`, {number, index, of, live}: the number among messages of its kind, its place among
 * the `of` versions, and whether it is being written.
 */
export class MessageView {
    constructor(node, acts) {
        this.node = node;
        this.acts = acts;
        this.body = make("div", {class: "body"});
        this.prose = node.role === "assistant" ? new Prose(this.body) : null;
        this.foot = make("div", {class: "foot"});
        this.rate = make("span", {class: "rate"}); /* shown while it is written */
        this.name = make("h2", {class: "unseen"});
        this.element = make("li", {class: `message ${node.role}`, tabindex: "-1", "data-id": node.id},
                            this.name, this.body, this.foot);
        this.drawn = "";
    }

    show(node, shown) {
        this.node = node;
        this.name.textContent = `${node.role === "user" ? "Question" : "Answer"} ${shown.number}`;
        this.showText(shown.live);
        const drawn = JSON.stringify([shown, node.info ?? null]);
        if (drawn !== this.drawn && !this.element.classList.contains("edited")) {
            this.drawn = drawn;
            this.drawFoot(shown);
        }
    }

    showText(live) {
        this.element.classList.toggle("live", live);
        this.element.setAttribute("aria-busy", String(live));
        if (this.prose !== null)
            this.prose.show(this.node.text, live);
        else if (!this.element.classList.contains("edited"))
            this.body.replaceChildren(this.node.text, ...fileList(this.node.files));
        this.element.classList.toggle("nothing", this.node.text === "" && this.node.files === undefined);
    }

    drawFoot(shown) {
        const open = this.foot.querySelector("details")?.open ?? false;
        const parts = [];
        const info = this.node.info;
        if (shown.of > 1)
            parts.push(this.pager(shown));
        if (this.node.role === "user")
            parts.push(button("Edit", () => this.edit()));
        else if (!shown.live)
            parts.push(button("Regenerate", () => this.acts.again(this.node)));
        if (info !== undefined && !shown.live && canGoOn(info))
            parts.push(button("Continue", () => this.acts.goOn(this.node)));
        parts.push(shown.live ? this.rate : copyButton(() => this.textToCopy()));
        if (info !== undefined)
            parts.push(details(info));
        const end = info ? endOf(info) : null;
        const note = end ?? (this.node.role === "assistant" && !info && !shown.live ? "Not finished, or being written in another tab." : null);
        this.foot.replaceChildren(...parts);
        if (note !== null)
            this.foot.prepend(make("p", {class: "note"}, note));
        if (open && this.foot.querySelector("details"))
            this.foot.querySelector("details").open = true;
    }

    /* Returns an answer without the thoughts before it. */
    textToCopy() {
        const {text} = this.node;
        return this.prose === null ? text : splitThought(text).answer || text;
    }

    pager(shown) {
        const step = (by) => this.acts.step(this.node, by);
        return make("span", {class: "pager", role: "group", "aria-label": "Versions"},
                    button("‹", () => step(-1), {"aria-label": "Earlier version", disabled: shown.index === 0}),
                    make("span", {}, `${shown.index + 1} / ${shown.of}`),
                    button("›", () => step(1), {"aria-label": "Later version", disabled: shown.index === shown.of - 1}));
    }

    /* Replaces the question by a field to edit it. */
    edit() {
        if (this.element.classList.contains("edited"))
            return;
        const area = make("textarea", {rows: "3", "aria-label": "Edit the question"});
        const done = (ask) => {
            const text = area.value;
            this.element.classList.remove("edited");
            this.body.textContent = this.node.text;
            this.drawn = "";
            if (ask && text.trim() !== "")
                this.acts.edit(this.node, text);
            else
                this.acts.redraw(this.node);
        };
        area.value = this.node.text;
        area.addEventListener("keydown", (event) => {
            if (event.isComposing)
                return;
            if (event.key === "Escape" || (event.key === "Enter" && !event.shiftKey)) {
                event.preventDefault();
                event.stopPropagation();
                done(event.key === "Enter");
            }
        });
        this.element.classList.add("edited");
        this.body.replaceChildren(area);
        this.foot.replaceChildren(button("Ask again from here", () => done(true), {class: "main"}),
                                  button("Cancel", () => done(false)));
        area.focus();
        area.setSelectionRange(area.value.length, area.value.length);
    }
}
