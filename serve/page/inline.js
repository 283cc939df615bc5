/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the text of a paragraph into a tree: strings, and {type, ...}: code {text}, formula {text,
 * display}, em, strong, del {nodes}, link {href, nodes}, break. Marks are matched while the text is read, so each is
 * moved only once. Marks without a partner stay text.
 */

import {readReference, withoutReferences} from "./entities.js";

const DEEPEST = 8;
const LONGEST_FORMULA = 4000;
const LONGEST_ADDRESS = 2000;
const ADDRESS = /https?:\/\/[^\s<>"`|\\^{}]{1,2000}/y;
const AFTER_ADDRESS = ".,;:!?*_~'\"]";
const BRACED = /<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/y;
const DOLLARS = /\$((?![\s$])(?:\\[^]|[^\\$]){1,1000})(?<!\s)\$(?![\p{L}\p{N}$])/uy;
const PRICE = /^[\d.,]+\s+\p{L}{2}/u;
const SPECIAL = /[\\`*_~[\]!<h\n$&]/g;

/* Returns an address if a link may lead to it; null for all others, such as javascript: ones. */
export function safeAddress(address) {
    let url;
    try {
        url = new URL(address);
    } catch {
        return null;
    }
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
}

export function parseInline(text) {
    return new Reader(text).read();
}

const isSpace = (c) => c === undefined || /\s/.test(c);
const isMark = (c) => c !== undefined && /[\p{P}\p{S}]/u.test(c);

/* Returns a text without the marks at its end. */
function trimMarks(text, marks) {
    let n = text.length;
    while (n > 0 && marks.includes(text[n - 1]))
        n--;
    return text.slice(0, n);
}

class Reader {
    constructor(text) {
        this.text = text;
        this.at = 0;
        this.out = []; /* strings, nodes, and marks that may begin something */
        this.openers = []; /* marks in `out`: {c, n, place, deep}; deep: nesting of the nodes after
                              it */
        this.count = {"*": 0, "_": 0, "~": 0, "[": 0};
        this.ends = {}; /* where the mark that ends a formula comes next; -1: nowhere */
        this.ticks = null; /* run length -> places of such runs of backticks */
    }

    read() {
        const readers = {"\\": this.escape, "`": this.code, "*": this.emphasis, "_": this.emphasis,
                         "~": this.emphasis, "[": this.bracket, "!": this.bracket, "]": this.link,
                         "<": this.braced, "h": this.address, "\n": this.newline,
                         "$": this.dollar, "&": this.reference};
        while (this.at < this.text.length) {
            SPECIAL.lastIndex = this.at;
            const next = SPECIAL.exec(this.text)?.index ?? this.text.length;
            if (next > this.at)
                this.put(this.text.slice(this.at, next));
            this.at = next;
            if (next < this.text.length)
                readers[this.text[next]].call(this);
        }
        return plain(this.out);
    }

    put(node) {
        this.out.push(node);
        if (node.depth > (this.openers.at(-1)?.deep ?? Infinity))
            this.openers.at(-1).deep = node.depth;
    }

    /* Takes n characters as plain text. */
    asText(n = 1) {
        this.put(this.text.slice(this.at, this.at + n));
        this.at += n;
    }

    escape() {
        const next = this.text[this.at + 1];
        if ((next === "(" || next === "[") && this.formula(`\\${next}`, next === "(" ? "\\)" : "\\]", next === "["))
            return;
        if (next === "\n") {
            this.put({type: "break"});
            this.at += 2;
        } else if (next !== undefined && /[!-/:-@[-`{-~]/.test(next)) {
            this.put(next);
            this.at += 2;
        } else {
            this.asText();
        }
    }

    newline() {
        const before = this.out.at(-1);
        const hard = typeof before === "string" && before.endsWith("  ");
        if (hard)
            this.out[this.out.length - 1] = before.trimEnd();
        this.put(hard ? {type: "break"} : "\n");
        this.at++;
    }

    reference() {
        const found = readReference(this.text, this.at);
        if (found === null) {
            this.asText();
            return;
        }
        this.put(found[0]);
        this.at += found[1];
    }

    /* ---- formulas ---- */

    /* Takes a formula between two marks, if the second one comes; returns whether it did. */
    formula(begin, end, display) {
        const from = this.at + begin.length;
        if (this.ends[end] === undefined || (this.ends[end] >= 0 && this.ends[end] < from))
            this.ends[end] = this.text.indexOf(end, from);
        const to = this.ends[end];
        if (to < from || to - from > LONGEST_FORMULA)
            return false;
        this.put({type: "formula", text: this.text.slice(from, to), display});
        this.at = to + end.length;
        return true;
    }

    /* $x$ is a formula if it stands apart from words and numbers, so $5 and $6 are prices. */
    dollar() {
        if (this.text[this.at + 1] === "$" && this.formula("$$", "$$", true))
            return;
        DOLLARS.lastIndex = this.at;
        const found = DOLLARS.exec(this.text);
        const before = this.text[this.at - 1];
        if (found === null || PRICE.test(found[1]) || (before !== undefined && /[\p{L}\p{N}$]/u.test(before))) {
            this.asText();
            return;
        }
        this.put({type: "formula", text: found[1], display: false});
        this.at += found[0].length;
    }

    /* ---- code ---- */

    findTicks() {
        this.ticks = new Map();
        for (const run of this.text.matchAll(/`+/g)) {
            const places = this.ticks.get(run[0].length) ?? [];
            places.push(run.index);
            this.ticks.set(run[0].length, places);
        }
        for (const places of this.ticks.values())
            places.reverse();
    }

    code() {
        if (this.ticks === null)
            this.findTicks();
        const n = /^`+/.exec(this.text.slice(this.at, this.at + 1000))[0].length;
        const places = this.ticks.get(n) ?? [];
        while (places.length > 0 && places.at(-1) <= this.at)
            places.pop();
        if (places.length === 0) {
            this.asText(n);
            return;
        }
        let text = this.text.slice(this.at + n, places.at(-1)).replace(/\n/g, " ");
        if (text.startsWith(" ") && text.endsWith(" ") && text.trim() !== "")
            text = text.slice(1, -1);
        this.put({type: "code", text});
        this.at = places.at(-1) + n;
    }

    /* ---- emphasis ---- */

    emphasis() {
        const c = this.text[this.at];
        let n = 1;
        while (this.text[this.at + n] === c)
            n++;
        const before = this.text[this.at - 1], after = this.text[this.at + n];
        const left = !isSpace(after) && (!isMark(after) || isSpace(before) || isMark(before));
        const right = !isSpace(before) && (!isMark(before) || isSpace(after) || isMark(after));
        const inWord = c === "_";
        const opens = left && (!inWord || !right || isMark(before));
        const closes = right && (!inWord || !left || isMark(after));
        this.at += n;
        if (c === "~" && n !== 2) {
            this.put(c.repeat(n));
            return;
        }
        if (closes)
            n = this.close(c, n);
        if (n > 0 && opens)
            this.open(c, n);
        else if (n > 0)
            this.put(c.repeat(n));
    }

    open(c, n, mark = c) {
        this.openers.push({c, n, place: this.out.length, deep: 0});
        this.out.push({mark, n});
        this.count[c]++;
    }

    drop() {
        const opener = this.openers.pop();
        const before = this.openers.at(-1);
        this.count[opener.c]--;
        if (before !== undefined)
            before.deep = Math.max(before.deep, opener.deep);
        return opener;
    }

    /* Closes what earlier marks opened. Returns how many of the n marks are left over. */
    close(c, n) {
        while (n > 0 && this.count[c] > 0) {
            while (this.openers.at(-1).c !== c)
                this.drop();
            const opener = this.openers.at(-1);
            if (opener.deep >= DEEPEST) {
                this.drop();
                continue;
            }
            const used = c === "~" ? 2 : Math.min(opener.n, n, 2);
            const type = c === "~" ? "del" : used === 2 ? "strong" : "em";
            this.wrap(opener.place + 1, {type, depth: opener.deep + 1});
            n -= used;
            opener.n -= used;
            this.out[opener.place].n = opener.n;
            if (opener.n === 0)
                this.drop();
        }
        return n;
    }

    /* Moves everything in `out` from a place on into a node. */
    wrap(place, node) {
        node.nodes = plain(this.out.slice(place));
        this.out.length = place;
        this.put(node);
    }

    /* ---- links ---- */

    /* Opens a link. An image becomes a link to it, so nothing is loaded. */
    bracket() {
        const image = this.text[this.at] === "!";
        if (image && this.text[this.at + 1] !== "[") {
            this.asText();
            return;
        }
        this.at += image ? 2 : 1;
        this.open("[", 1, image ? "![" : "[");
    }

    link() {
        if (this.count["["] === 0) {
            this.asText();
            return;
        }
        while (this.openers.at(-1).c !== "[")
            this.drop();
        const opener = this.drop();
        const target = this.target(this.at + 1);
        const href = target && safeAddress(target.address);
        if (!href || opener.deep >= DEEPEST) {
            this.asText();
            return;
        }
        while (this.count["["] > 0)
            this.drop(); /* links cannot be nested */
        this.out[opener.place] = "";
        this.wrap(opener.place, {type: "link", href, depth: opener.deep + 1});
        this.at = target.end;
    }

    /* Reads (ADDRESS) or (ADDRESS "title") at a place; null: there is none. */
    target(at) {
        if (this.text[at] !== "(")
            return null;
        const most = Math.min(this.text.length, at + LONGEST_ADDRESS);
        let end = at + 1, depth = 0;
        for (; end < most && !/\s/.test(this.text[end]); end++) {
            depth += this.text[end] === "(" ? 1 : this.text[end] === ")" ? -1 : 0;
            if (depth < 0 || depth > 4)
                break;
        }
        const address = withoutReferences(this.text.slice(at + 1, end).replace(/^<(.*)>$/, "$1"));
        const rest = /^\s{0,9}(?:"[^"]{0,300}"|'[^']{0,300}')?\s{0,9}\)/.exec(this.text.slice(end, end + 330));
        return rest !== null && depth <= 0 ? {address, end: end + rest[0].length} : null;
    }

    braced() {
        BRACED.lastIndex = this.at;
        const found = BRACED.exec(this.text);
        const href = found && safeAddress(found[1]);
        if (!href) {
            this.asText();
            return;
        }
        this.put({type: "link", href, nodes: [found[1]], depth: 1});
        this.at += found[0].length;
    }

    address() {
        if (this.count["["] > 0 || !this.text.startsWith("http", this.at)) {
            this.asText();
            return;
        }
        ADDRESS.lastIndex = this.at;
        const before = this.text[this.at - 1];
        const found = before !== undefined && /[\p{L}\p{N}]/u.test(before) ? null : ADDRESS.exec(this.text);
        let text = found ? trimMarks(found[0], AFTER_ADDRESS) : "";
        if (!text.includes("("))
            text = trimMarks(text, `${AFTER_ADDRESS})`);
        const href = text === "" ? null : safeAddress(text);
        if (!href) {
            this.asText();
            return;
        }
        this.put({type: "link", href, nodes: [text], depth: 1});
        this.at += text.length;
    }
}

/* Turns marks without a partner into text, and joins adjacent texts. */
function plain(items) {
    const nodes = [];
    for (const item of items) {
        const node = item.mark === undefined ? item : item.mark.repeat(item.n);
        if (typeof node === "string" && typeof nodes.at(-1) === "string")
            nodes[nodes.length - 1] += node;
        else if (node !== "")
            nodes.push(node);
    }
    return nodes;
}
