/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversations in the browser's storage, each under a key of its own.
 *
 * A conversation is a tree of messages: a question that was edited, and an answer that was asked for
 * again, are further children of the same parent, and nothing is written over. So what two tabs did
 * to the same conversation can always be joined: all messages of both (`merge`).
 *
 * {id, title, titled, system, sampling, set, created, updated, nodes, picked}: `titled` and `set` are
 * the times when title and settings were changed; `nodes` are {id, parent, role, text, at, info} by
 * id, the parent of the first ones is ""; `picked` is the child that is shown, by parent.
 */

const PREFIX = "tern.chat.";
export const MOST_CONVERSATIONS = 500;

export function newId() {
    return [...crypto.getRandomValues(new Uint8Array(9))].map((b) => b.toString(36).padStart(2, "0")).join("");
}

export function newConversation(system = "", sampling = {}) {
    const now = Date.now();
    return {id: newId(), title: "", titled: 0, system, sampling, set: now, created: now, updated: now,
            nodes: {}, picked: {}};
}

/* The same message in two tabs: one of them writes it, so the one with more is the newer one. */
function newerNode(a, b) {
    if (a === undefined || b === undefined)
        return a ?? b;
    return Boolean(a.info) === Boolean(b.info) ? (b.text.length > a.text.length ? b : a) : (a.info ? a : b);
}

/* Both of them in one; where they differ in what is shown, as `ours` has it. */
export function merge(ours, theirs) {
    const nodes = {};
    for (const id of new Set([...Object.keys(ours.nodes), ...Object.keys(theirs.nodes)]))
        nodes[id] = newerNode(ours.nodes[id], theirs.nodes[id]);
    const title = theirs.titled > ours.titled ? theirs : ours;
    const set = theirs.set > ours.set ? theirs : ours;
    return {...ours, nodes, title: title.title, titled: title.titled, system: set.system, sampling: set.sampling,
            set: set.set, created: Math.min(ours.created, theirs.created),
            updated: Math.max(ours.updated, theirs.updated), picked: {...theirs.picked, ...ours.picked}};
}

const isText = (x) => typeof x === "string";
const isObject = (x) => x !== null && typeof x === "object" && !Array.isArray(x);

function isNode(id, n) {
    return isObject(n) && n.id === id && isText(n.parent) && isText(n.text) && ["user", "assistant"].includes(n.role) &&
        Number.isFinite(n.at) && (n.info === undefined || isObject(n.info));
}

/* A conversation from a text; null for anything else. */
export function read(text) {
    try {
        const c = JSON.parse(text);
        const sound = isText(c.id) && isText(c.title) && isText(c.system) && isObject(c.sampling) &&
            [c.titled, c.set, c.created, c.updated].every(Number.isFinite) && isObject(c.nodes) && isObject(c.picked) &&
            Object.entries(c.nodes).every(([id, n]) => isNode(id, n));
        return sound ? c : null;
    } catch {
        return null;
    }
}

/* Parent -> its children, in the order in which they were made. */
export function childrenOf(c) {
    const children = new Map();
    for (const node of Object.values(c.nodes)) {
        if (!children.has(node.parent))
            children.set(node.parent, []);
        children.get(node.parent).push(node);
    }
    for (const list of children.values())
        list.sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1));
    return children;
}

/* The messages that are shown, from the first one, with all children. */
export function pathOf(c) {
    const children = childrenOf(c);
    const path = [], seen = new Set();
    let parent = "";
    while (children.has(parent) && !seen.has(parent)) {
        const list = children.get(parent);
        const node = list.find((n) => n.id === c.picked[parent]) ?? list.at(-1);
        seen.add(parent);
        path.push(node);
        parent = node.id;
    }
    return {path, children};
}

export function titleOf(c) {
    if (c.title !== "")
        return c.title;
    const first = Object.values(c.nodes).filter((n) => n.role === "user").sort((a, b) => a.at - b.at)[0];
    const words = first ? first.text.replace(/\s+/g, " ").trim() : "";
    return words === "" ? "New conversation" : words.length > 60 ? `${words.slice(0, 58).trimEnd()}…` : words;
}

export class Store {
    #kept = new Set(); /* ids that this tab has seen in the storage */

    /* `changed(id)`: another tab wrote or deleted a conversation. */
    constructor(changed) {
        addEventListener("storage", (event) => {
            if (event.storageArea === localStorage && (event.key === null || event.key.startsWith(PREFIX)))
                changed(event.key === null ? null : event.key.slice(PREFIX.length));
        });
    }

    get(id) {
        const c = read(localStorage.getItem(PREFIX + id) ?? "");
        if (c !== null)
            this.#kept.add(id);
        return c;
    }

    /* All of them, the last one that was used first. */
    list() {
        const all = [];
        for (let i = 0; i < localStorage.length; i++) {
            const key = localStorage.key(i);
            const c = key.startsWith(PREFIX) ? this.get(key.slice(PREFIX.length)) : null;
            if (c !== null)
                all.push(c);
        }
        return all.sort((a, b) => b.updated - a.updated);
    }

    /* Keeps it, together with what other tabs added: "" when it is kept, else why it is not. */
    keep(c) {
        try {
            const theirs = this.get(c.id);
            if (theirs === null && this.#kept.has(c.id))
                return "deleted";
            if (theirs === null && this.list().length >= MOST_CONVERSATIONS)
                return "full";
            Object.assign(c, theirs === null ? c : merge(c, theirs));
            localStorage.setItem(PREFIX + c.id, JSON.stringify(c));
            this.#kept.add(c.id);
            return "";
        } catch {
            return "full"; /* or the browser keeps nothing */
        }
    }

    delete(id) {
        localStorage.removeItem(PREFIX + id);
    }
}

/* A value of this page alone, in the storage that is asked for. */
export const values = {
    get(name, storage = localStorage) {
        try {
            return storage.getItem(`tern.${name}`);
        } catch {
            return null;
        }
    },
    set(name, value, storage = localStorage) {
        try {
            if (value === null)
                storage.removeItem(`tern.${name}`);
            else
                storage.setItem(`tern.${name}`, value);
        } catch {
            /* it counts until the page is left */
        }
    },
};
