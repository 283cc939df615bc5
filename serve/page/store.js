/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversations in the browser's storage, each under its own key.
 *
 * A conversation is a tree of messages. An edited question, and another answer to a question, are
 * further children of the same parent, and nothing is overwritten. So the changes of two tabs to
 * one conversation can always be merged: the result has all messages of both (`merge`).
 *
 * {id, title, titled, system, sampling, set, created, updated, nodes, picked}: `titled` and `set`
 * are the times when title and settings were changed; `nodes` are {id, parent, role, text, at,
 * info, files} by id, and the first ones have the parent ""; `picked` is the child that is shown, by
 * parent.
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

/* Returns the newer of two states of a message. Only one tab writes a message, so the longer one is
 * newer. */
function newerNode(a, b) {
    if (a === undefined || b === undefined)
        return a ?? b;
    return Boolean(a.info) === Boolean(b.info) ? (b.text.length > a.text.length ? b : a) : (a.info ? a : b);
}

/* Merges two states of a conversation. Where they show different messages, `ours` counts. */
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
    const sound = n?.files === undefined || (Array.isArray(n.files) && n.files.every((f) => isObject(f) && isText(f.name) && isText(f.text)));
    return sound && isObject(n) && n.id === id && isText(n.parent) && isText(n.text) && ["user", "assistant"].includes(n.role) &&
        Number.isFinite(n.at) && (n.info === undefined || isObject(n.info));
}

/* Reads a conversation from a text; null for anything else. */
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

/* Returns a map from parents to their children, in the order in which they were made. */
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

/* Returns the messages that are shown, from the first one on, and all children. */
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

/* Returns whether a conversation has a text, in small letters, in its title or in any message. */
export function has(c, words) {
    return [c.title, ...Object.values(c.nodes).map((n) => n.text)].some((text) => text.toLowerCase().includes(words));
}

/* Returns the conversations in an exported file, of one or of all, and how many are not sound. */
export function readExport(text) {
    let found;
    try {
        found = JSON.parse(text);
    } catch {
        return {sound: [], broken: 1};
    }
    const all = Array.isArray(found?.conversations) ? found.conversations : [found?.conversation];
    const sound = all.map((c) => read(JSON.stringify(c) ?? "")).filter((c) => c !== null);
    return {sound, broken: all.length - sound.length};
}

export function titleOf(c) {
    if (c.title !== "")
        return c.title;
    const first = Object.values(c.nodes).filter((n) => n.role === "user").sort((a, b) => a.at - b.at)[0];
    const words = first ? first.text.replace(/\s+/g, " ").trim() : "";
    return words === "" ? "New conversation" : words.length > 60 ? `${words.slice(0, 58).trimEnd()}…` : words;
}

export class Store {
    #kept = new Set(); /* ids that this tab has written or seen in the storage */

    /* `changed(id)` is called when another tab wrote or deleted a conversation. */
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

    /* Returns all conversations, the latest used first. */
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

    /* Stores a conversation, merged with what other tabs added. Returns "" or why it was not
     * stored. */
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
            return "full"; /* or the browser stores nothing for this page */
        }
    }

    /* Stores a conversation from a file, also one that was deleted here. */
    restore(c) {
        this.#kept.delete(c.id);
        return this.keep(c);
    }

    delete(id) {
        localStorage.removeItem(PREFIX + id);
    }
}

/* Values of this page alone, in either storage of the browser. */
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
            /* the value holds until the page is closed */
        }
    },
};
