/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the text of a PDF, in the common case: streams that are plain or deflated, fonts that say
 * which letters their codes are, or that use the usual alphabets. Text in images is not found.
 * Errors say what cannot be read.
 */

const MOST_BYTES = 32 << 20, MOST_INFLATED = 64 << 20, DEEPEST = 50;

export class PdfError extends Error {}

class Ref {
    constructor(id) {
        this.id = id;
    }
}

/* A name such as /Font, and an operator such as Tj. */
class Name {
    constructor(text) {
        this.text = text;
    }
}
class Word extends Name {}

const TOKEN = /(?:[\0\t\n\f\r ]|%[^\r\n]*)*(<<|>>|[[\]]|\(|<[0-9A-Fa-f\s]*>|\/[^\0\t\n\f\r ()<>[\]{}/%]*|[^\0\t\n\f\r ()<>[\]{}/%]+|[{}])?/y;
const ESCAPES = {n: "\n", r: "\r", t: "\t", b: "\b", f: "\f"};

class Reader {
    constructor(text, at = 0) {
        Object.assign(this, {text, at, depth: 0});
    }

    /* The text of the next token; undefined at the end. */
    token() {
        TOKEN.lastIndex = this.at;
        const found = TOKEN.exec(this.text);
        this.at = TOKEN.lastIndex;
        if (found[1] === undefined && this.at < this.text.length)
            this.at++;
        return found[1];
    }

    /* The next value, or a Word; undefined at the end. Words that end lists are Words, too. */
    value() {
        const t = this.token();
        if (t === undefined)
            return this.at < this.text.length ? this.value() : undefined;
        if (t === "(")
            return this.string();
        if (t === "<<" || t === "[")
            return this.list(t === "<<");
        if (t[0] === "<")
            return hex(t.slice(1, -1).replace(/\s/g, ""));
        if (t[0] === "/")
            return new Name(t.slice(1).replace(/#([0-9A-Fa-f]{2})/g, (_, c) => String.fromCharCode(parseInt(c, 16))));
        if (/^[+-]?(?:\d+\.?\d*|\.\d+)$/.test(t))
            return this.number(t);
        return t === "true" ? true : t === "false" ? false : t === "null" ? null : new Word(t);
    }

    /* A number, or a reference such as "12 0 R". */
    number(t) {
        const ref = /^\d+$/.test(t) ? /^[\0\t\n\f\r ]+\d{1,5}[\0\t\n\f\r ]+R(?![A-Za-z0-9])/.exec(this.text.slice(this.at, this.at + 20)) : null;
        if (ref === null)
            return Number(t);
        this.at += ref[0].length;
        return new Ref(Number(t));
    }

    list(isDictionary) {
        const items = [];
        if (++this.depth > DEEPEST)
            throw new PdfError("it is nested too deeply");
        for (let item = this.value(); item !== undefined; item = this.value()) {
            if (item instanceof Word && (item.text === ">>" || item.text === "]"))
                break;
            items.push(item);
        }
        this.depth--;
        if (!isDictionary)
            return items;
        const dictionary = new Map();
        for (let i = 0; i + 1 < items.length; i += 2)
            if (items[i] instanceof Name)
                dictionary.set(items[i].text, items[i + 1]);
        return dictionary;
    }

    /* Text in parentheses, which may hold pairs of them. */
    string() {
        let out = "", deep = 1;
        for (; this.at < this.text.length; this.at++) {
            const c = this.text[this.at];
            if (c === "\\") {
                const octal = /^[0-7]{1,3}/.exec(this.text.slice(this.at + 1, this.at + 4));
                const next = this.text[this.at + 1];
                out += octal ? String.fromCharCode(parseInt(octal[0], 8) & 255) : next === "\n" || next === "\r" ? "" : ESCAPES[next] ?? next;
                this.at += octal ? octal[0].length : 1;
                continue;
            }
            deep += c === "(" ? 1 : c === ")" ? -1 : 0;
            if (deep === 0)
                break;
            out += c;
        }
        this.at++;
        return out;
    }
}

const hex = (digits) => (digits.length % 2 ? `${digits}0` : digits).replace(/../g, (pair) => String.fromCharCode(parseInt(pair, 16)));

function textOf(bytes) {
    const parts = [];
    for (let i = 0; i < bytes.length; i += 8192)
        parts.push(String.fromCharCode(...bytes.subarray(i, i + 8192)));
    return parts.join("");
}

class Document_ {
    constructor(bytes) {
        this.bytes = bytes;
        this.text = textOf(bytes);
        this.objects = new Map();
        this.inflated = 0;
        this.work = 4 * bytes.length + 1000; /* characters of objects that may still be read: sound ones lie side by side */
    }

    get(value) {
        for (let i = 0; value instanceof Ref && i < DEEPEST; i++)
            value = this.objects.get(value.id);
        return value;
    }

    /* A member of a dictionary, or of a stream's. */
    of(value, name) {
        const held = this.get(value);
        return this.get((held?.dictionary ?? held)?.get?.(name));
    }

    async read() {
        for (const found of this.text.matchAll(/(?<![0-9])(\d{1,9})[\0\t\n\f\r ]+\d{1,5}[\0\t\n\f\r ]+obj(?![a-z])/g))
            this.objects.set(Number(found[1]), this.objectAt(found.index + found[0].length));
        if (/\/Encrypt[\0\t\n\f\r ]+(?:\d|<<)/.test(this.text))
            throw new PdfError("it is encrypted");
        for (const held of [...this.objects.values()])
            if (this.of(held, "Type")?.text === "ObjStm")
                await this.unpack(held);
    }

    objectAt(at) {
        const reader = new Reader(this.text, at);
        const value = reader.value();
        this.work -= reader.at - at;
        if (this.work < 0)
            throw new PdfError("it is damaged");
        const begin = value instanceof Map ? /^[\0\t\n\f\r ]*stream\r?\n?/.exec(this.text.slice(reader.at, reader.at + 40)) : null;
        return begin === null ? value : {dictionary: value, from: reader.at + begin[0].length};
    }

    /* The bytes of a stream as text. */
    async stream(held) {
        let end = held.from + this.of(held, "Length");
        if (!/^[\0\t\n\f\r ]*endstream/.test(this.text.slice(end, end + 20)))
            end = this.text.indexOf("endstream", held.from);
        const filter = [this.of(held, "Filter") ?? []].flat().map((f) => this.get(f)?.text);
        if (end < 0 || filter.length > 1 || (filter.length === 1 && filter[0] !== "FlateDecode" && filter[0] !== "Fl"))
            return null;
        const raw = this.bytes.subarray(held.from, end);
        return filter.length === 0 ? textOf(raw) : textOf(await this.inflate(raw));
    }

    async inflate(raw) {
        const reader = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate")).getReader();
        const parts = [];
        try {
            for (let next = await reader.read(); !next.done; next = await reader.read()) {
                this.inflated += next.value.length;
                if (this.inflated > MOST_INFLATED)
                    throw new PdfError("it holds too much");
                parts.push(next.value);
            }
        } catch (e) {
            if (e instanceof PdfError)
                throw e; /* bytes behind the end of the data are an error, too: what came counts */
        }
        return new Uint8Array(await new Blob(parts).arrayBuffer());
    }

    /* Takes the objects out of a stream of objects. */
    async unpack(held) {
        const text = await this.stream(held);
        if (text === null)
            return;
        const first = this.of(held, "First");
        const numbers = text.slice(0, first).trim().split(/\s+/).map(Number);
        for (let i = 0; i + 1 < numbers.length; i += 2)
            this.objects.set(numbers[i], new Reader(text, first + numbers[i + 1]).value());
    }

    /* All pages in their order, each with what it inherits. */
    pages() {
        const root = [...this.objects.values()].findLast((held) => this.of(held, "Type")?.text === "Catalog");
        const pages = [], seen = new Set();
        const walk = (node, resources, depth) => {
            if (!(node instanceof Map) || seen.has(node) || depth > DEEPEST)
                return;
            seen.add(node);
            const own = this.of(node, "Resources") ?? resources;
            const kids = this.of(node, "Kids");
            if (Array.isArray(kids))
                kids.forEach((kid) => walk(this.get(kid), own, depth + 1));
            else
                pages.push({node, resources: own});
        };
        walk(this.of(root, "Pages"), undefined, 0);
        return pages;
    }
}

/* ---- fonts ---- */

const utf16 = (text) => text.replace(/[^][^]/g, (pair) => String.fromCharCode(256 * pair.charCodeAt(0) + pair.charCodeAt(1)));
const numberOf = (text) => [...text].reduce((sum, c) => 256 * sum + c.charCodeAt(0), 0);

/* Reads a table from codes to letters: {size, letters}, where size is the bytes of a code. */
function readMap(text) {
    const letters = new Map(), reader = new Reader(text);
    let size = 1, held = [];
    for (let item = reader.value(); item !== undefined; item = reader.value()) {
        if (!(item instanceof Word)) {
            held.push(item);
            continue;
        }
        if (item.text === "endcodespacerange" && typeof held[0] === "string")
            size = Math.max(1, held[0].length);
        for (let i = 0; item.text === "endbfchar" && i + 1 < held.length; i += 2)
            letters.set(numberOf(held[i]), utf16(held[i + 1]));
        for (let i = 0; item.text === "endbfrange" && i + 2 < held.length; i += 3)
            addRange(letters, held.slice(i, i + 3));
        held = [];
    }
    return {size, letters};
}

function addRange(letters, [from, to, target]) {
    const first = numberOf(from);
    const n = Math.min(numberOf(to) - first, 65535);
    for (let i = 0; i <= n; i++) {
        if (Array.isArray(target)) {
            letters.set(first + i, utf16(target[i] ?? ""));
        } else {
            const text = utf16(target);
            letters.set(first + i, text.slice(0, -1) + String.fromCharCode(text.charCodeAt(text.length - 1) + i));
        }
    }
}

const latin = new TextDecoder("windows-1252");
const GLYPHS = {space: " ", period: ".", comma: ",", hyphen: "-", colon: ":", semicolon: ";", parenleft: "(", parenright: ")", quoteright: "’", quoteleft: "‘", quotedblleft: "“",
                quotedblright: "”", endash: "–", emdash: "—", bullet: "•", fi: "fi", fl: "fl", ff: "ff", ffi: "ffi", ffl: "ffl", slash: "/", zero: "0", one: "1", two: "2", three: "3",
                four: "4", five: "5", six: "6", seven: "7", eight: "8", nine: "9", equal: "=", plus: "+", percent: "%", question: "?", exclam: "!", underscore: "_", at: "@"};

/* The letters that the font's own list of glyphs puts in place of the usual ones. */
function differences(file, font, letters) {
    let code = 0;
    for (const item of file.of(file.of(font, "Encoding"), "Differences") ?? []) {
        if (typeof item === "number")
            code = item;
        else if (item instanceof Name)
            letters.set(code++, GLYPHS[item.text] ?? (/^uni[0-9A-F]{4}$/.test(item.text) ? String.fromCharCode(parseInt(item.text.slice(3), 16)) : item.text.length === 1 ? item.text : ""));
    }
}

/* The widths of a font's letters by their codes, in thousandths of its size. */
function readWidths(file, font) {
    const widths = new Map();
    const descendant = file.get((file.of(font, "DescendantFonts") ?? [])[0]);
    const first = file.of(font, "FirstChar") ?? 0;
    (file.of(font, "Widths") ?? []).forEach((width, i) => widths.set(first + i, file.get(width)));
    const list = (file.of(descendant, "W") ?? []).map((item) => file.get(item));
    for (let i = 0; i + 1 < list.length; i += Array.isArray(list[i + 1]) ? 2 : 3)
        if (Array.isArray(list[i + 1]))
            list[i + 1].forEach((width, k) => widths.set(list[i] + k, file.get(width)));
        else
            for (let code = list[i]; code <= Math.min(list[i + 1], list[i] + 65535); code++)
                widths.set(code, list[i + 2]);
    return {widths, width: file.of(descendant, "DW") ?? (descendant === undefined ? 500 : 1000)};
}

async function readFont(file, font) {
    const widths = readWidths(file, font);
    const map = file.of(font, "ToUnicode");
    const text = map?.dictionary !== undefined ? await file.stream(map) : null;
    if (text !== null)
        return {...readMap(text), ...widths};
    if (file.of(font, "Subtype")?.text === "Type0")
        return {size: 2, letters: new Map(), ...widths};
    const letters = new Map([...Array(256).keys()].map((code) => [code, latin.decode(new Uint8Array([code]))]));
    differences(file, font, letters);
    return {size: 1, letters, ...widths};
}

/* ---- pages ---- */

const WORD_GAP = 0.15, ROW_GAP = 0.4; /* in heights of letters */

/* The matrix that first does what m does, then what n does. */
const product = (m, n) => [m[0] * n[0] + m[1] * n[2], m[0] * n[1] + m[1] * n[3], m[2] * n[0] + m[3] * n[2], m[2] * n[1] + m[3] * n[3],
                           m[4] * n[0] + m[5] * n[2] + n[4], m[4] * n[1] + m[5] * n[3] + n[5]];
const ONE = [1, 0, 0, 1, 0, 0];
const isMatrix = (given) => given.length === 6 && given.every((x) => typeof x === "number");

/* Writes the text that the operators of a page show: a new row where the height changes, a blank
 * where there is a gap. */
class Page {
    constructor(fonts) {
        Object.assign(this, {fonts, font: null, size: 1, out: "", matrix: ONE, saved: [], line: ONE, advance: 0, leading: 0, end: null});
    }

    /* Where the next letter goes: x, y and the height of letters. */
    place() {
        const m = product(product([1, 0, 0, 1, this.advance, 0], this.line), this.matrix);
        return {x: m[4], y: m[5], height: this.size * Math.hypot(m[2], m[3]) || 1};
    }

    show(codes) {
        if (this.font === null || typeof codes !== "string")
            return;
        const now = this.place();
        if (this.end !== null && Math.abs(now.y - this.end.y) > ROW_GAP * now.height)
            this.out += "\n";
        else if (this.end !== null && (now.x - this.end.x > WORD_GAP * now.height || now.x - this.end.x < -now.height) && !/\s$/.test(this.out))
            this.out += " ";
        const {size, letters, widths, width} = this.font;
        for (let i = 0; i + size <= codes.length; i += size) {
            const code = numberOf(codes.slice(i, i + size));
            this.out += letters.get(code) ?? "";
            this.advance += ((widths.get(code) ?? width) / 1000) * this.size;
        }
        this.end = this.place();
    }

    move(x, y) {
        this.line = product([1, 0, 0, 1, x || 0, y || 0], this.line);
        this.advance = 0;
    }

    run(operator, given) {
        const [first, second] = given;
        switch (operator) {
        case "q":
            if (this.saved.push(this.matrix) > 1000)
                this.saved.shift();
            break;
        case "Q":
            this.matrix = this.saved.pop() ?? this.matrix;
            break;
        case "cm":
            this.matrix = isMatrix(given) ? product(given, this.matrix) : this.matrix;
            break;
        case "BT":
            this.line = ONE;
            this.advance = 0;
            break;
        case "Tm":
            this.line = isMatrix(given) ? given : this.line;
            this.advance = 0;
            break;
        case "Tf":
            this.font = this.fonts.get(first?.text) ?? null;
            this.size = typeof second === "number" ? second : 1;
            break;
        case "TL":
            this.leading = first;
            break;
        case "TD": case "Td":
            this.leading = operator === "TD" ? -second : this.leading;
            this.move(first, second);
            break;
        case "T*": case "'": case "\"":
            this.move(0, -this.leading);
            this.show(given.at(-1));
            break;
        case "Tj":
            this.show(first);
            break;
        case "TJ":
            for (const item of Array.isArray(first) ? first : [])
                if (typeof item === "number")
                    this.advance -= (item / 1000) * this.size;
                else
                    this.show(item);
        }
    }
}

async function readPage(file, {node, resources}) {
    const fonts = new Map();
    for (const [name, font] of file.of(resources, "Font") ?? [])
        fonts.set(name, await readFont(file, font));
    const page = new Page(fonts);
    let text = "";
    for (const part of [file.of(node, "Contents") ?? []].flat()) {
        const held = file.get(part);
        text += held?.dictionary === undefined ? "" : `${await file.stream(held) ?? ""}\n`;
    }
    const reader = new Reader(text);
    let given = [];
    for (let item = reader.value(); item !== undefined; item = reader.value()) {
        if (item instanceof Word) {
            page.run(item.text, given);
            given = [];
        } else if (given.push(item) > 64) {
            given.shift();
        }
    }
    return page.out;
}

export const isPdf = (bytes) => textOf(bytes.subarray(0, 5)) === "%PDF-";

/* Returns the text of a PDF. Throws a PdfError that says what cannot be read. */
export async function readPdf(bytes) {
    if (bytes.length > MOST_BYTES)
        throw new PdfError("it is too long");
    const file = new Document_(bytes);
    await file.read();
    const pages = [];
    for (const page of file.pages())
        pages.push(await readPage(file, page));
    const text = pages.map((page) => page.replace(/[ \t]+\n/g, "\n").replace(/[^\P{Cc}\n\t]/gu, "").trim()).join("\n\n").trim();
    if (!/[\p{L}\p{N}]/u.test(text))
        throw new PdfError("it has no text that can be read, as where pages are images");
    return text;
}
