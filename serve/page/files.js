/* SPDX-License-Identifier: Apache-2.0 */
/* Files of text, and the text of PDF files, that go with a question. They are read in the browser and sent as part of it. */

import {announce, button, count, find, make} from "./dom.js";
import {isPdf, PdfError, readPdf} from "./pdf.js";
import {countTokens} from "./server.js";

const MOST_BYTES = 32 << 20;
const MOST_LETTERS = 64; /* of a token, on average: a longer text cannot fit, so it is not counted */

/* Decodes the bytes of a file of text; null: they are none. */
export function decode(bytes) {
    const mark = bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : bytes[0] === 0xfe && bytes[1] === 0xff ? "utf-16be" : "utf-8";
    try {
        const text = new TextDecoder(mark, {fatal: true}).decode(bytes);
        return text.includes("\0") ? null : text;
    } catch {
        return null;
    }
}

/* The question as the model gets it: the files, each between fences that it does not hold, then the text. */
export function withFiles({text, files = []}) {
    const parts = files.map((f) => {
        let fence = "```";
        while (f.text.includes(fence))
            fence += "`";
        return `File ${f.name}:\n${fence}\n${f.text.replace(/\n$/, "")}\n${fence}`;
    });
    return [...parts, text].filter((part) => part !== "").join("\n\n");
}

/* The names of a question's files, as a list; none without files. */
export function fileList(files = []) {
    return files.length === 0 ? [] : [make("ul", {class: "files", "aria-label": "Attached files"}, ...files.map((f) => make("li", {}, f.name)))];
}

export class Attachments {
    /* `server`: {context} */
    constructor(server) {
        Object.assign(this, {server, files: [], notes: [], last: Promise.resolve()});
        const field = find("attach-file");
        find("attach").addEventListener("click", () => field.click());
        field.addEventListener("change", async () => {
            const chosen = [...field.files];
            field.value = "";
            await this.add(chosen);
            find("ask").focus();
        });
        addEventListener("dragover", (event) => {
            if (event.dataTransfer.types.includes("Files")) {
                event.preventDefault();
                document.body.classList.add("dropping");
            }
        });
        addEventListener("dragleave", (event) => event.relatedTarget === null && document.body.classList.remove("dropping"));
        addEventListener("drop", (event) => {
            document.body.classList.remove("dropping");
            if (event.dataTransfer.files.length > 0) {
                event.preventDefault();
                this.add([...event.dataTransfer.files]);
            }
        });
    }

    /* Why a file cannot be attached; "": it can, and is. */
    async take(file) {
        const {context} = this.server;
        const room = `the context has room for ${count(context)} tokens`;
        const bytes = new Uint8Array(await file.slice(0, MOST_BYTES + 1).arrayBuffer());
        let text;
        try {
            text = isPdf(bytes) ? await readPdf(bytes) : decode(bytes);
        } catch (e) {
            return `${file.name} is a PDF that cannot be read: ${e instanceof PdfError ? e.message : "it is damaged"}`;
        }
        if (text === null)
            return `${file.name} is neither a file of text (UTF-8 or UTF-16) nor a PDF; only those can be attached`;
        if (bytes.length > MOST_BYTES || (context > 0 && text.length > MOST_LETTERS * context))
            return `${file.name} has ${count(text.length)} characters, ${room}`;
        const n = await countTokens(withFiles({text: "", files: [...this.files, {name: file.name, text}]}));
        if (context > 0 && n >= context)
            return `${file.name} has ${count(n)} tokens, with what is attached already; ${room}`;
        this.files.push({name: file.name, text});
        return "";
    }

    /* Files are taken in turn, so that each is counted with those before it. */
    add(files) {
        this.last = this.last.then(() => this.addAll(files));
        return this.last;
    }

    async addAll(files) {
        this.notes = [];
        for (const file of files) {
            let note;
            try {
                note = await this.take(file);
            } catch (e) {
                note = `${file.name} was not attached: ${e.message}`;
            }
            if (note !== "")
                this.notes.push(note);
            announce(note === "" ? `${file.name} is attached` : note);
        }
        this.draw();
    }

    /* Returns the files for a question, and begins with none. */
    taken() {
        const {files} = this;
        this.files = [];
        this.notes = [];
        this.draw();
        return files;
    }

    draw() {
        const remove = (f) => {
            this.files = this.files.filter((other) => other !== f);
            this.draw();
            find("ask").focus();
        };
        find("files").replaceChildren(
            ...this.files.map((f) => make("li", {}, f.name, button("×", () => remove(f), {"aria-label": `Remove ${f.name}`}))),
            ...this.notes.map((note) => make("li", {class: "warn"}, note)));
        find("files").hidden = this.files.length + this.notes.length === 0;
    }
}
