/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the work of the page's Markdown grows: every text is made of two pieces, each repeated, and
 * again with twice as many of both. The steps are counted, not timed: characters and items that
 * the functions of the language go over.
 *
 *     node steps.mjs FOLDER      the page's scripts; prints what grows faster than its text
 */
const folder = process.argv[2];
const {parseBlocks} = await import(`${folder}/markdown.js`);
const {parseInline} = await import(`${folder}/inline.js`);
const {parseFormula, LONGEST_FORMULA} = await import(`${folder}/math.js`);
const {colour} = await import(`${folder}/code.js`);

const SIZE = 8000;
const MOST = 400; /* steps for each character */
const PIECES = ["*a ", "**a *b ", "[a](http:a)", "h", "`a", "``a`", "[", "](", "> ", "- ", "1. ", "|a", "|a\n|-\n", "- a\n  ", "_a_b", "~~a~~",
                "[a](x", " -", "http://", "<http://x", "\\*", "a  \n", "![", "\n", "a\n=\n",
                "$a", "$$", "\\(", "\\[\n", "&lt;"];
const FORMULA_PIECES = ["\\frac", "{", "^1", "\\left(", "&", "\\\\", "\\begin{cases}", "\\text{", "'"];
const CODE_PIECES = ["#", "\"", "/*", "a1", "\n", "\"\"\"", "\\"];

let steps = 0;

/* What a call went over: all of a list or text that was searched, and of one that was cut the piece. */
function counted(kind, names, work) {
    for (const name of names) {
        const real = kind.prototype[name];
        kind.prototype[name] = function (...args) {
            const out = real.apply(this, args);
            steps += 1 + work(this, out);
            return out;
        };
    }
}

counted(Array, ["some", "filter", "map", "every", "includes", "find", "join"], (list) => list.length);
counted(Array, ["slice"], (_, out) => out.length);
counted(String, ["trim", "trimStart", "trimEnd", "split", "includes", "replace", "matchAll"], (text) => text.length);
counted(String, ["slice", "repeat"], (_, out) => out.length);
const Address = URL;
globalThis.URL = class extends Address {
    constructor(address) {
        steps += MOST + address.length; /* the most of all, and worse where it fails */
        super(address);
    }
};

function work(read, a, b, size) {
    const text = a.repeat(Math.floor(size / 2 / a.length)) + b.repeat(Math.floor(size / 2 / b.length));
    steps = 0;
    read(text);
    return steps;
}

function compare(pieces, size, read) {
    for (const a of pieces)
        for (const b of pieces) {
            const once = work(read, a, b, size), twice = work(read, a, b, 2 * size);
            if (twice > 2.4 * once + size || twice > 2 * size * MOST)
                console.log(JSON.stringify([a, b]), once, twice);
        }
}

compare(PIECES, SIZE, (text) => {
    parseBlocks(text);
    parseInline(text);
});
compare(FORMULA_PIECES, LONGEST_FORMULA / 2, parseFormula);
compare(CODE_PIECES, SIZE, (text) => ["python", "c"].map((language) => colour(text, language)));
