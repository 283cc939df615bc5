/* SPDX-License-Identifier: Apache-2.0 */
/* The page's requests to the server. Failures are thrown as Trouble, of a kind that people can do
 * something about. */

import {readEvents} from "./events.js";
import {values} from "./store.js";

/*
 * Kinds: "network" no reply, or one that broke off; "key" 401; "limit" 429; "ending" 503; "model"
 * another model is served; "context" the conversation is too long; "refused" all others. `retry`:
 * seconds that the server asks to wait; `numbers`: {n_prompt_tokens, n_ctx}.
 */
export class Trouble extends Error {
    constructor(kind, message, more = {}) {
        super(message);
        Object.assign(this, {kind, retry: 0, numbers: null}, more);
    }
}

/* The key is kept until the tab is closed, or in the browser if the user asked for that. */
export const key = {
    get: () => values.get("key", sessionStorage) ?? values.get("key") ?? "",
    isKept: () => values.get("key") !== null,
    set(text, kept) {
        values.set("key", text === "" || kept ? null : text, sessionStorage);
        values.set("key", text !== "" && kept ? text : null);
    },
};

/* Events in a stream have no status, but the same types. */
const STATUS = {unavailable_error: 503, rate_limit_error: 429, authentication_error: 401};

const addressOf = (path) => new URL(path, document.baseURI).href;

function kindOf(status, error) {
    if (status === 401)
        return "key";
    if (status === 429)
        return "limit";
    if (status === 503)
        return "ending";
    if (status === 404 && error.code === "model_not_found")
        return "model";
    return error.n_ctx !== undefined ? "context" : "refused";
}

/* Makes a Trouble from the error in a reply or in an event of a stream. */
function troubleOf(status, error, retry = 0) {
    const message = typeof error?.message === "string" ? error.message : `the server replied with status ${status}`;
    const numbers = error?.n_ctx !== undefined ? {n_prompt_tokens: error.n_prompt_tokens, n_ctx: error.n_ctx} : null;
    return new Trouble(kindOf(status, error ?? {}), message, {retry, numbers, status});
}

async function refusalOf(reply) {
    let error = null;
    try {
        error = (await reply.json()).error;
    } catch {
        /* the reply is not the server's but a proxy's */
    }
    return troubleOf(reply.status, error, Number(reply.headers.get("Retry-After")) || 0);
}

async function ask(path, {body, signal} = {}) {
    const headers = body === undefined ? {} : {"Content-Type": "application/json"};
    if (key.get() !== "")
        headers.Authorization = `Bearer ${key.get()}`;
    let reply;
    try {
        reply = await fetch(addressOf(path), {method: body === undefined ? "GET" : "POST", headers, signal, cache: "no-store",
                                              credentials: "same-origin", body: body && JSON.stringify(body)});
    } catch (e) {
        if (signal?.aborted)
            throw e;
        throw new Trouble("network", "The server cannot be reached.");
    }
    if (!reply.ok)
        throw await refusalOf(reply);
    return reply;
}

async function read(reply, how) {
    try {
        return await reply[how]();
    } catch {
        throw new Trouble("network", "The reply broke off, or is not what a server of tern says.");
    }
}

export const getJson = async (path) => read(await ask(path), "json");
export const getText = async (path) => read(await ask(path), "text");

/* Returns how many tokens a text has. */
export const countTokens = async (text) => (await read(await ask("tokenize", {body: {content: text}}), "json")).tokens.length;

/* Keeps a seed as text if it has more digits than a number can hold. */
const exactSeed = (name, value, context) =>
    name === "seed" && typeof value === "number" && !Number.isSafeInteger(value) ? (context?.source ?? value) : value;

/* Yields the documents of a streamed answer. Throws if the stream ends without saying that it is
 * complete. */
export async function* streamChat(body, signal) {
    const reply = await ask("v1/chat/completions", {body, signal});
    let done = false;
    try {
        for await (const data of readEvents(reply.body)) {
            if (data === "[DONE]") {
                done = true;
                break;
            }
            const event = JSON.parse(data, exactSeed);
            if (event.error)
                throw troubleOf(STATUS[event.error.type] ?? 500, event.error);
            yield event;
        }
    } catch (e) {
        if (signal.aborted || e instanceof Trouble)
            throw e;
        throw new Trouble("network", "The connection broke off in the middle of the answer.");
    }
    if (!done)
        throw new Trouble("network", "The stream ended before the answer was complete.");
}
