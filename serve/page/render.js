/* SPDX-License-Identifier: Apache-2.0 */
/* Turns trees of Markdown into elements. Text of a model becomes text and links that safeAddress
 * allows, never markup. */

import {copyButton, make} from "./dom.js";
import {colour} from "./code.js";
import {parseInline} from "./inline.js";
import {parseBlocks, splitThought} from "./markdown.js";
import {parseFormula} from "./math.js";

const NAMES = {em: "em", strong: "strong", del: "del"};

const MATHML = "http://www.w3.org/1998/Math/MathML";

/* Makes the elements of a tree of math.js. */
function mathNode(node) {
    if (typeof node === "string")
        return node;
    const [name, attributes, ...children] = node;
    const e = document.createElementNS(MATHML, name);
    for (const [key, value] of Object.entries(attributes))
        if (value !== null)
            e.setAttribute(key, value);
    e.append(...children.map(mathNode));
    return e;
}

/* Shows a formula; one that cannot be shown stays as it was written. */
function formula(text, display) {
    const tree = parseFormula(text);
    if (tree === null)
        return make("code", {}, text);
    return mathNode(["math", {display: display ? "block" : null, alttext: text}, tree]);
}

function inlineNode(node) {
    if (typeof node === "string")
        return node;
    if (node.type === "break")
        return make("br");
    if (node.type === "code")
        return make("code", {}, node.text);
    if (node.type === "formula")
        return formula(node.text, node.display);
    if (node.type === "link")
        return make("a", {href: node.href, target: "_blank", rel: "noopener noreferrer nofollow"},
                    ...node.nodes.map(inlineNode));
    return make(NAMES[node.type], {}, ...node.nodes.map(inlineNode));
}

const inline = (text) => parseInline(text).map(inlineNode);

const codePart = ([kind, text]) => (kind === "" ? text : make("span", {class: `c-${kind}`}, text));

function codeBlock(block) {
    const label = block.language || "code";
    return make("figure", {class: "code"},
                make("figcaption", {}, make("span", {}, label), copyButton(() => block.text)),
                make("pre", {tabindex: "0", "aria-label": `Code: ${label}`, role: "region"},
                     make("code", {}, ...colour(block.text, block.language).map(codePart))));
}

/* Renders an item of a list. Without blank lines it has no paragraphs; "[ ]" and "[x]" become
 * boxes. */
function listItem(blocks, loose) {
    const item = make("li");
    const first = blocks[0];
    const box = first?.type === "paragraph" ? /^\[([ xX])\] /.exec(first.text) : null;
    if (box !== null) {
        item.className = "task";
        item.append(make("input", {type: "checkbox", disabled: true, checked: box[1] !== " ",
                                   "aria-label": box[1] === " " ? "to do" : "done"}), " ");
    }
    for (const block of blocks) {
        const shown = box !== null && block === first ? {...block, text: block.text.slice(4)} : block;
        if (shown.type === "paragraph" && !loose)
            item.append(...inline(shown.text));
        else
            item.append(blockNode(shown));
    }
    return item;
}

function table(block) {
    const row = (cells, name) => make("tr", {}, ...cells.map((cell, i) =>
        make(name, {class: block.sides[i], scope: name === "th" ? "col" : null}, ...inline(cell))));
    return make("div", {class: "table", tabindex: "0", role: "region", "aria-label": "Table"},
                make("table", {}, make("thead", {}, row(block.head, "th")),
                     make("tbody", {}, ...block.rows.map((cells) => row(cells, "td")))));
}

function blockNode(block) {
    switch (block.type) {
    case "heading": /* in a list or a quote it is not a heading of the page */
        return make(block.depth ? `h${Math.min(block.depth + 2, 6)}` : "p", {},
                    ...(block.depth ? inline(block.text) : [make("strong", {}, ...inline(block.text))]));
    case "code":
        return codeBlock(block);
    case "quote":
        return make("blockquote", {}, ...block.blocks.map(blockNode));
    case "list":
        return make(block.ordered ? "ol" : "ul", {start: block.ordered && block.start !== 1 ? block.start : null},
                    ...block.items.map((blocks) => listItem(blocks, block.loose)));
    case "table":
        return table(block);
    case "rule":
        return make("hr");
    case "formula":
        return make("div", {class: "formula", tabindex: "0", role: "group", "aria-label": "Formula"}, formula(block.text, true));
    default:
        return make("p", {}, ...inline(block.text));
    }
}

/* Sets the depths of headings. The page has two levels of its own; those of an answer follow
 * without a gap, whatever level they begin with. */
function rank(blocks) {
    const open = [];
    for (const block of blocks.filter((b) => b.type === "heading")) {
        while (open.length > 0 && open.at(-1) >= block.level)
            open.pop();
        open.push(block.level);
        block.depth = open.length;
    }
}

/* Shows a text that grows. Blocks that did not change keep their elements. The first `before` nodes
 * of the place belong to others. */
class Blocks {
    constructor(place, before = 0) {
        this.place = place;
        this.before = before;
        this.raw = [];
    }

    show(text) {
        const blocks = parseBlocks(text);
        rank(blocks);
        let same = 0;
        while (same < blocks.length && same < this.raw.length && blocks[same].raw === this.raw[same])
            same++;
        while (this.place.childNodes.length > this.before + same)
            this.place.lastChild.remove();
        for (const block of blocks.slice(same))
            this.place.append(blockNode(block));
        this.raw = blocks.map((block) => block.raw);
    }
}

/* Shows the thoughts before an answer, folded. */
class Thought {
    constructor() {
        const place = make("div");
        this.name = make("summary");
        this.blocks = new Blocks(place);
        this.element = make("details", {class: "thought"}, this.name, place);
    }

    show(text, live) {
        this.name.textContent = live ? "Thinking…" : "Thought";
        this.blocks.show(text);
    }
}

/* Shows an answer; `live`: it is being written. */
export class Prose {
    constructor(place) {
        this.place = place;
        this.thought = null;
        this.blocks = new Blocks(place);
    }

    show(text, live = false) {
        const {thought, answer, open} = splitThought(text);
        if ((thought === null) !== (this.thought === null)) {
            this.thought = thought === null ? null : new Thought();
            this.blocks = new Blocks(this.place, this.thought === null ? 0 : 1);
            this.place.replaceChildren(...(this.thought === null ? [] : [this.thought.element]));
        }
        this.thought?.show(thought, live && open);
        this.blocks.show(answer);
    }
}
