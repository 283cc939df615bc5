/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events: takes pieces of a stream, and returns the data of complete events. */

const LONGEST = 16 << 20; /* limit of an event that has not ended, in characters */

export class EventReader {
    #rest = "";
    #data = [];
    #size = 0;

    /* Returns the data of the events that end in this piece. Lines may end with \n, \r\n or \r.
     * Comments, which the server sends during long silences, and other fields are ignored. */
    push(piece) {
        const events = [];
        const text = this.#rest + piece;
        let from = 0;
        for (;;) {
            const end = this.#endOfLine(text, from);
            if (end < 0)
                break;
            this.#takeLine(text.slice(from, end), events);
            from = end + (text.startsWith("\r\n", end) ? 2 : 1);
        }
        this.#rest = text.slice(from);
        if (this.#rest.length + this.#size > LONGEST)
            throw new Error("an event of the stream is too long");
        return events;
    }

    /* A \r at the end of a piece may be half of \r\n. */
    #endOfLine(text, from) {
        const feed = text.indexOf("\n", from);
        const turn = text.indexOf("\r", from);
        if (turn < 0 || (feed >= 0 && feed < turn))
            return feed;
        return turn + 1 < text.length ? turn : -1;
    }

    #takeLine(line, events) {
        if (line === "") {
            if (this.#data.length > 0)
                events.push(this.#data.join("\n"));
            this.#data = [];
            this.#size = 0;
            return;
        }
        const colon = line.indexOf(":");
        const name = colon < 0 ? line : line.slice(0, colon);
        if (name !== "data")
            return;
        const value = colon < 0 ? "" : line.slice(colon + 1);
        this.#data.push(value.startsWith(" ") ? value.slice(1) : value);
        this.#size += value.length;
    }
}

/* Yields the data of all events of a body, as they come. */
export async function* readEvents(body) {
    const bytes = body.getReader();
    const decoder = new TextDecoder();
    const reader = new EventReader();
    try {
        for (;;) {
            const {done, value} = await bytes.read();
            yield* reader.push(done ? decoder.decode() : decoder.decode(value, {stream: true}));
            if (done)
                return;
        }
    } finally {
        bytes.cancel().catch(() => {});
    }
}
