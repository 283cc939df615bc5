/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses Markdown into a tree of blocks; the texts in them are not parsed yet. There is no HTML: a
 * tag in an answer is plain text. Parsing takes time in proportion to the length of the text;
 * blocks that are nested too deeply stay text.
 *
 * A block is {type, ...} with `raw`, the lines that it came from, by which unchanged blocks are
 * recognised: heading {level, text}, paragraph {text}, code {language, text}, quote {blocks}, list
 * {ordered, start, loose, items: [blocks]}, table {sides, head, rows}, rule, formula {text}.
 */

import {withoutReferences} from "./entities.js";

const DEEPEST = 8;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])( |\t|$)/;
const FENCE = /^ {0,3}(`{3,}|~{3,})([^\n]*)$/;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;

const isBlank = (line) => line.trim() === "";
const indentOf = (line) => line.length - line.trimStart().length;

const THOUGHT_ENDS = "</think>";

/* Separates a model's thoughts from its answer: {thought, answer, open}. `thought` is null if there
 * is none; `open`: its end has not come yet. The opening mark may be part of the template; then a
 * closing mark counts only if it is alone on its line. */
export function splitThought(text) {
    const begin = /^\s*<think>/.exec(text);
    const from = begin === null ? 0 : begin[0].length;
    const end = begin === null ? text.search(/^ *<\/think> *$/m) : text.indexOf(THOUGHT_ENDS, from);
    if (end < 0)
        return begin === null ? {thought: null, answer: text, open: false} : {thought: text.slice(from), answer: "", open: true};
    const thought = text.slice(from, end);
    const answer = text.slice(text.indexOf(THOUGHT_ENDS, end) + THOUGHT_ENDS.length).trimStart();
    return {thought: thought.trim() === "" ? null : thought, answer, open: false};
}

export function parseBlocks(text) {
    return parseLines(text.replace(/\r\n?/g, "\n").replace(/\t/g, "    ").split("\n"), 0);
}

function parseLines(lines, depth) {
    const blocks = [];
    let at = 0;
    while (at < lines.length) {
        if (isBlank(lines[at])) {
            at++;
            continue;
        }
        const [block, next] = parseBlock(lines, at, depth);
        block.raw = lines.slice(at, next).join("\n");
        blocks.push(block);
        at = next;
    }
    return blocks;
}

function parseBlock(lines, at, depth) {
    const line = lines[at];
    if (isFence(line))
        return parseCode(lines, at);
    if (isHeading(line))
        return [parseHeading(line), at + 1];
    if (RULE.test(line))
        return [{type: "rule"}, at + 1];
    if (depth < DEEPEST && isQuote(line))
        return parseQuote(lines, at, depth);
    if (depth < DEEPEST && ITEM.test(line))
        return parseList(lines, at, depth);
    if (isTable(lines, at))
        return parseTable(lines, at);
    if (formulaEnd(lines, at) > 0)
        return parseFormulaLines(lines, at);
    return parseParagraph(lines, at);
}

const isQuote = (line) => /^ {0,3}>/.test(line);
const isHeading = (line) => /^ {0,3}#{1,6}( |$)/.test(line);

function isFence(line) {
    const fence = FENCE.exec(line);
    return fence !== null && !(fence[1][0] === "`" && fence[2].includes("`"));
}

/* True if a line ends the paragraph before it. */
function interrupts(lines, at) {
    const line = lines[at];
    const item = ITEM.exec(line);
    return isBlank(line) || isFence(line) || isHeading(line) || isQuote(line) || RULE.test(line) ||
        (item !== null && !isBlank(line.slice(item[0].length)) && (!/\d/.test(item[2]) || /^1[.)]/.test(item[2]))) ||
        isTable(lines, at) || formulaEnd(lines, at) > 0;
}

/* ---- formulas that stand alone ---- */

const MOST_FORMULA_LINES = 50;
const FORMULA = /^ *(\$\$|\\\[|\\begin\{([a-zA-Z]{1,20}\*?)\})/;

/* Returns the number of the line behind a formula that begins in a line; 0: none begins, or its end has not come. */
function formulaEnd(lines, at) {
    const begin = FORMULA.exec(lines[at]);
    if (begin === null)
        return 0;
    const mark = begin[2] !== undefined ? `\\end{${begin[2]}}` : begin[1] === "$$" ? "$$" : "\\]";
    for (let end = at; end < Math.min(lines.length, at + MOST_FORMULA_LINES) && !isBlank(lines[end]); end++) {
        const place = lines[end].indexOf(mark, end === at ? begin[0].length : 0);
        if (place >= 0)
            return /^[.,;:]? *$/.test(lines[end].slice(place + mark.length)) ? end + 1 : 0;
    }
    return 0;
}

function parseFormulaLines(lines, at) {
    const end = formulaEnd(lines, at);
    const text = lines.slice(at, end).join("\n").trim();
    const mark = /^(\$\$|\\\[)/.test(text) ? 2 : 0;
    const [, inner, after] = /^([^]*?)([.,;:]?)$/.exec(text.slice(mark));
    return [{type: "formula", text: (mark > 0 ? inner.slice(0, -2) : inner) + after}, end];
}

function parseHeading(line) {
    const words = line.trim();
    const level = /^#+/.exec(words)[0].length;
    let text = words.slice(level).trim();
    let end = text.length;
    while (text[end - 1] === "#")
        end--;
    if (end === 0 || text[end - 1] === " ")
        text = text.slice(0, end).trim();
    return {type: "heading", level, text};
}

function parseParagraph(lines, at) {
    let end = at + 1;
    while (end < lines.length && !interrupts(lines, end) && !/^ {0,3}(=+|-+) *$/.test(lines[end]))
        end++;
    const text = lines.slice(at, end).map((line) => line.trimStart()).join("\n").trimEnd();
    const under = end < lines.length ? /^ {0,3}(=+|-+) *$/.exec(lines[end]) : null;
    if (under === null)
        return [{type: "paragraph", text}, end];
    return [{type: "heading", level: under[1][0] === "=" ? 1 : 2, text}, end + 1];
}

/* Takes code up to the closing fence, or to the end if that has not come yet. */
function parseCode(lines, at) {
    const [, fence, words] = FENCE.exec(lines[at]);
    const indent = indentOf(lines[at]);
    const text = [];
    let end = at + 1;
    for (; end < lines.length; end++) {
        const line = lines[end].trim();
        if (line.length >= fence.length && line === fence[0].repeat(line.length) && indentOf(lines[end]) < 4)
            break;
        text.push(lines[end].slice(Math.min(indent, indentOf(lines[end]))));
    }
    const language = withoutReferences(words).trim().split(/\s/, 1)[0].slice(0, 40);
    return [{type: "code", language, text: text.join("\n")}, Math.min(end + 1, lines.length)];
}

function parseQuote(lines, at, depth) {
    const inner = [];
    let end = at;
    while (end < lines.length && (isQuote(lines[end]) || (end > at && !interrupts(lines, end))))
        inner.push(lines[end++].replace(/^ {0,3}> ?/, ""));
    return [{type: "quote", blocks: parseLines(inner, depth + 1)}, end];
}

/* ---- lists ---- */

const kindOf = (marker) => marker.at(-1);

function parseList(lines, at, depth) {
    const first = ITEM.exec(lines[at]);
    const ordered = /\d/.test(first[2]);
    const list = {type: "list", ordered, start: ordered ? parseInt(first[2], 10) : 1, loose: false, items: []};
    let end = at;
    while (end < lines.length) {
        const item = ITEM.exec(lines[end]);
        if (item === null || kindOf(item[2]) !== kindOf(first[2]) || RULE.test(lines[end]))
            break;
        const [inner, next, blank] = takeItem(lines, end, item);
        const blocks = parseLines(inner, depth + 1);
        list.items.push(blocks);
        const more = next < lines.length && ITEM.test(lines[next]) && kindOf(ITEM.exec(lines[next])[2]) === kindOf(first[2]);
        list.loose ||= (blank && more) || hasGap(inner, blocks);
        end = next;
    }
    while (end > at + 1 && isBlank(lines[end - 1]))
        end--;
    return [list, end];
}

/* True if there are blank lines between the paragraphs of an item. */
function hasGap(inner, blocks) {
    return blocks.filter((b) => b.type === "paragraph").length > 1 && inner.some(isBlank);
}

/* Returns the lines of an item without its indent, the number of the line after it, and whether a
 * blank line precedes that. A nested item may be indented by two blanks, even if the marker is
 * longer. */
function takeItem(lines, at, item) {
    const rest = lines[at].slice(item[0].length);
    const blanks = indentOf(rest);
    const width = item[0].length + (blanks < 4 && !isBlank(rest) ? blanks : 0);
    const inner = [lines[at].slice(Math.min(width, lines[at].length))];
    let end = at + 1, blank = false;
    for (; end < lines.length; end++) {
        const line = lines[end];
        const indent = indentOf(line);
        if (isBlank(line)) {
            blank = true;
            inner.push("");
            continue;
        }
        const inside = indent >= width || (indent >= 2 && indent > item[1].length && ITEM.test(line.slice(2)));
        if (!inside && (blank || ITEM.test(line) || interrupts(lines, end)))
            break;
        inner.push(line.slice(Math.min(indent, inside ? Math.min(width, indent) : indent)));
        blank = false;
    }
    return [inner, end, blank];
}

/* ---- tables ---- */

const MOST_COLUMNS = 64;

/* Splits a row into cells. A bar after a backslash or in code does not separate cells. */
function splitRow(line) {
    const cells = [];
    let cell = "";
    const text = line.trim();
    for (let i = text.startsWith("|") ? 1 : 0; i < text.length; i++) {
        if (text[i] === "\\" && text[i + 1] === "|") {
            cell += "|";
            i++;
        } else if (text[i] === "|") {
            cells.push(cell.trim());
            cell = "";
        } else {
            cell += text[i];
        }
    }
    if (cell.trim() !== "" || !text.endsWith("|"))
        cells.push(cell.trim());
    return cells.slice(0, MOST_COLUMNS);
}

function isTable(lines, at) {
    if (at + 1 >= lines.length || !lines[at].includes("|") || !lines[at + 1].includes("|") ||
        !/^[ |:-]+$/.test(lines[at + 1]))
        return false;
    const marks = splitRow(lines[at + 1]);
    return marks.every((cell) => /^:?-+:?$/.test(cell)) && marks.length === splitRow(lines[at]).length;
}

function parseTable(lines, at) {
    const sides = splitRow(lines[at + 1]).map((cell) =>
        cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "right") : "left");
    const rows = [];
    let end = at + 2;
    for (; end < lines.length && lines[end].includes("|") && !isBlank(lines[end]); end++) {
        const cells = splitRow(lines[end]);
        rows.push(sides.map((_, i) => cells[i] ?? ""));
    }
    return [{type: "table", sides, head: splitRow(lines[at]), rows}, end];
}
