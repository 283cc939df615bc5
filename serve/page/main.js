/* SPDX-License-Identifier: Apache-2.0 */
/* The page as a whole: which conversation and which view is shown, the server's state, keys. */

import {announce, button, find, make} from "./dom.js";
import {askDelete, askKey, askSettings, askTitle, openDialog, prepareDialogs} from "./dialogs.js";
import {Engine} from "./engine.js";
import {Attachments} from "./files.js";
import {getJson, key} from "./server.js";
import {has, merge, newConversation, pathOf, readExport, Store, titleOf, values} from "./store.js";
import {Talk} from "./talk.js";

const IDEAS = ["What is 2+2?", "Tell me a story about a small bird.", "Write a list of three colours."];
const AGAIN = 3000;

const server = {model: "", context: 0, state: "", timer: null};
const store = new Store(otherTabWrote);
const talk = new Talk(store, server, {changed: drawList, kept: showKept, needsKey, newTalk, lost, gone});
const attachments = new Attachments(server);
const engine = new Engine(find("engine"), (e, asked) => (asked ? needsKey(() => {}) : noteFailure(e)));

/* ---- the server ---- */

const STATES = {"": "", away: "cannot be reached", key: "asks for a key", ending: "is ending"};

function showState(state) {
    if (state !== server.state && (state === "away" || server.state === "away"))
        announce(state === "away" ? "The server cannot be reached" : "The server is back");
    server.state = state;
    find("dot").className = state === "" ? "good" : state;
    find("key").hidden = state !== "key" && key.get() === "";
    find("state").textContent = STATES[state];
    find("model-name").textContent = server.model || "tern";
    find("empty-name").textContent = server.model || "the model";
    document.title = `${server.model || "tern"} · tern`;
    clearTimeout(server.timer);
    if (state === "away")
        server.timer = setTimeout(() => (document.visibilityState === "visible" ? readServer() : showState("away")), AGAIN);
}

function noteFailure(e) {
    if (e.kind === "network")
        showState("away");
    else if (e.kind === "key")
        showState("key");
}

/* Shows the names of several models to choose from. */
function showModels(models) {
    const choice = find("model-choice");
    choice.replaceChildren(...models.map((m) => make("option", {value: m.id}, m.id)));
    choice.value = server.model;
    choice.hidden = models.length < 2;
    find("model-name").hidden = !choice.hidden;
}

/* Finds out which models are served, and whether a key is needed. */
async function readServer() {
    try {
        const models = (await getJson("v1/models")).data;
        const model = models.find((m) => m.id === values.get("model")) ?? models[0];
        server.model = model.id;
        server.context = model.meta?.n_ctx ?? 0;
        showModels(models);
        await getJson("props");
        showState("");
    } catch (e) {
        if (e.kind === "network" || e.kind === "key")
            noteFailure(e);
        else
            showState("");
    }
}

async function lost(e) {
    if (e.kind === "model")
        await readServer();
    else
        noteFailure(e);
}

async function needsKey(again) {
    if (!(await askKey()))
        return;
    await readServer();
    again();
}

/* ---- conversations ---- */

function show(c) {
    values.set("shown", c.id, sessionStorage);
    talk.open(c);
    drawList();
}

function defaults() {
    try {
        const d = JSON.parse(values.get("defaults") ?? "{}");
        return [typeof d.system === "string" ? d.system : "", d.sampling ?? {}];
    } catch {
        return ["", {}];
    }
}

function newTalk() {
    show(newConversation(...defaults()));
    closeSide();
    showView("chat");
    find("ask").focus();
}

function openTalk(id) {
    const c = talk.live(id) ?? store.get(id);
    if (c === null)
        return;
    show(c);
    closeSide();
    showView("chat");
    find("ask").focus();
}

function drawList() {
    const list = find("list");
    const words = find("search").value.trim().toLowerCase();
    const all = store.list().filter((c) => words === "" || has(c, words));
    const held = document.activeElement?.closest("#list button")?.dataset.id;
    list.replaceChildren(...all.map((c) => {
        const shown = c.id === talk.c?.id;
        const title = titleOf(shown ? talk.c : c);
        const b = button(title, () => openTalk(c.id), {"data-id": c.id, title, "aria-current": shown ? "true" : null});
        if (talk.runs.has(c.id))
            b.append(make("span", {class: "busy", role: "img", "aria-label": "is being answered"}));
        return make("li", {}, b);
    }));
    find("none").hidden = words === "" || all.length > 0;
    if (held !== undefined)
        [...list.querySelectorAll("button")].find((b) => b.dataset.id === held)?.focus();
    find("tools").hidden = talk.c === null || Object.keys(talk.c.nodes).length === 0;
}

/* Another tab wrote a conversation: merges what it added into the one here. */
function otherTabWrote(id) {
    const c = id === null ? null : talk.live(id);
    const theirs = c === null ? null : store.get(id);
    if (c !== null && theirs !== null) {
        const before = Object.keys(theirs.nodes).length;
        Object.assign(c, merge(c, theirs));
        if (Object.keys(c.nodes).length > before && !talk.runs.has(id))
            store.keep(c); /* both tabs wrote at once, and the other was last */
        if (talk.c === c)
            talk.redraw();
    } else if (c !== null && Object.keys(c.nodes).length > 0) {
        talk.stop(c.id);
        gone(c);
    } else if (id === null) {
        newTalk(); /* the whole storage was cleared */
    }
    drawList();
}

function gone(c) {
    if (talk.c !== c)
        return;
    show(newConversation(...defaults()));
    note("The conversation was deleted in another tab.");
}

function note(text) {
    find("kept").textContent = text;
    find("kept").classList.add("warn");
    announce(text);
}

function showKept(problem) {
    if (problem === "full") {
        note("The browser has no room for more: export or delete conversations. What is written now is lost when the tab is closed.");
    } else if (problem === "") {
        find("kept").textContent = "Kept in this browser only.";
        find("kept").classList.remove("warn");
    }
}

async function rename() {
    const c = talk.c;
    const title = await askTitle(titleOf(c));
    if (title === null)
        return;
    c.title = title;
    c.titled = Date.now();
    talk.keep(c);
    talk.redraw();
}

function exportTalk() {
    const {path} = pathOf(talk.c);
    const c = talk.c;
    const document_ = {title: titleOf(c), exported: new Date().toISOString(), system: c.system, sampling: c.sampling,
                       messages: path.map(({role, text, at, info}) => ({role, content: text, at: new Date(at).toISOString(), info})),
                       conversation: c};
    download(titleOf(c).replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 50) || "conversation", document_);
}

function download(name, document_) {
    const address = URL.createObjectURL(new Blob([`${JSON.stringify(document_, null, 2)}\n`], {type: "application/json"}));
    const link = make("a", {href: address, download: `${name}.json`});
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
}

function exportAll() {
    download("tern-conversations", {exported: new Date().toISOString(), conversations: store.list()});
}

/* Adds the conversations of exported files to those here. */
async function importFiles(files) {
    let taken = 0, broken = 0, full = 0;
    for (const file of files) {
        const found = readExport(await file.text());
        broken += found.broken;
        for (const c of found.sound)
            if (store.restore(c) === "")
                taken++;
            else
                full++;
    }
    const parts = [`${taken} conversation${taken === 1 ? " is" : "s are"} imported`];
    if (broken > 0)
        parts.push(`${broken} could not be read: only what this page has exported can be`);
    if (full > 0)
        parts.push(`${full} did not fit into the browser's storage`);
    if (talk.c !== null && store.get(talk.c.id) !== null && !talk.runs.has(talk.c.id))
        show(store.get(talk.c.id));
    drawList();
    note(`${parts.join("; ")}.`);
}

async function deleteTalk() {
    const c = talk.c;
    if (!(await askDelete(titleOf(c), Object.keys(c.nodes).length)))
        return;
    talk.stop(c.id);
    store.delete(c.id);
    newTalk();
    announce("Deleted");
}

async function changeSettings() {
    const c = talk.c;
    const set = await askSettings(c);
    if (set === null)
        return;
    Object.assign(c, set, {set: Date.now()});
    values.set("defaults", JSON.stringify(set));
    if (Object.keys(c.nodes).length > 0)
        talk.keep(c);
}

/* ---- views ---- */

function showView(name) {
    for (const view of ["chat", "engine"]) {
        const shown = view === name;
        find(view).hidden = !shown;
        find(`tab-${view}`).setAttribute("aria-selected", String(shown));
        find(`tab-${view}`).tabIndex = shown ? 0 : -1;
    }
    engine.look(name === "engine");
    if (name === "chat")
        talk.scroll();
}

function openSide() {
    document.body.classList.add("side");
    find("menu").setAttribute("aria-expanded", "true");
    find("shade").hidden = false;
    find("new").focus();
}

function closeSide() {
    const open = document.body.classList.contains("side");
    document.body.classList.remove("side");
    find("menu").setAttribute("aria-expanded", "false");
    find("shade").hidden = true;
    if (open)
        find("menu").focus();
}

function toggleTheme() {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    values.set("theme", root.dataset.theme);
    announce(dark ? "Light" : "Dark");
}

/* ---- the question ---- */

function fit() {
    const area = find("ask");
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, innerHeight * 0.4)}px`;
}

function send() {
    const area = find("ask");
    if (!talk.runs.has(talk.c.id) && talk.send(area.value, attachments.files)) {
        attachments.taken();
        area.value = "";
        fit();
    }
    area.focus();
}

function prepareQuestion() {
    const area = find("ask");
    area.addEventListener("input", fit);
    area.addEventListener("keydown", (event) => {
        if (event.key === "Enter" && !event.shiftKey && !event.isComposing && matchMedia("(any-pointer: fine), (hover: hover)").matches) {
            event.preventDefault();
            send();
        }
    });
    find("form").addEventListener("submit", (event) => {
        event.preventDefault();
        send();
    });
    find("stop").addEventListener("click", () => {
        talk.stop();
        area.focus();
    });
    find("ideas").append(...IDEAS.map((idea) => make("li", {}, button(idea, () => {
        area.value = idea;
        send();
    }))));
}

/* ---- keys ---- */

function beside(by) {
    const buttons = [...document.querySelectorAll("#list button")];
    const at = buttons.findIndex((b) => b.dataset.id === talk.c.id);
    const next = buttons[at < 0 ? 0 : at + by];
    if (next)
        openTalk(next.dataset.id);
}

function lastOf(role) {
    const node = pathOf(talk.c).path.findLast((n) => n.role === role);
    return node && talk.views.get(node.id);
}

const KEYS = [
    ["/", "write a question", () => (showView("chat"), find("ask").focus())],
    ["n", "new conversation", newTalk],
    ["e", "edit the last question", () => lastOf("user")?.edit()],
    ["r", "answer again", () => lastOf("assistant") && talk.again(lastOf("assistant").node)],
    ["a", "go to the last answer", () => lastOf("assistant")?.element.focus()],
    ["[", "conversation before", () => beside(-1)],
    ["]", "conversation after", () => beside(1)],
    ["f", "search in all conversations", () => {
        if (getComputedStyle(find("menu")).display !== "none")
            openSide();
        find("search").focus();
    }],
    ["s", "system prompt and sampling", changeSettings],
    ["v", "chat or engine", () => showView(find("chat").hidden ? "chat" : "engine")],
    ["t", "light or dark", toggleTheme],
    ["?", "this list", () => openDialog("help")],
];

function onKey(event) {
    if (event.key === "Escape" && document.body.classList.contains("side")) {
        closeSide();
    } else if (event.key === "Escape" && talk.runs.has(talk.c.id) && document.querySelector("dialog[open]") === null) {
        talk.stop();
    } else if (!event.ctrlKey && !event.metaKey && !event.altKey && values.get("single") !== "off" &&
               event.target.closest("input, textarea, select, dialog") === null) {
        const found = KEYS.find(([name]) => name === event.key);
        if (found) {
            event.preventDefault();
            found[2]();
        }
    }
}

function prepareKeys() {
    const rows = [["Enter", "send"], ["Shift+Enter", "new line"], ["Esc", "stop the answer, close"], ...KEYS];
    find("keys").tBodies[0].append(...rows.map(([name, what]) =>
        make("tr", {}, make("th", {scope: "row"}, make("kbd", {}, name)), make("td", {}, what))));
    find("single").checked = values.get("single") !== "off";
    find("single").addEventListener("change", () => values.set("single", find("single").checked ? null : "off"));
    document.addEventListener("keydown", onKey);
    find("tab-chat").parentElement.addEventListener("keydown", (event) => {
        if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
            const name = find("chat").hidden ? "chat" : "engine";
            showView(name);
            find(`tab-${name}`).focus();
        }
    });
}

/* ---- the beginning ---- */

function prepareButtons() {
    const acts = {new: newTalk, menu: openSide, shade: closeSide, key: () => needsKey(() => {}), help: () => openDialog("help"),
                  theme: toggleTheme, settings: changeSettings, rename, export: exportTalk, delete: deleteTalk,
                  "tab-chat": () => showView("chat"), "tab-engine": () => showView("engine")};
    for (const [name, act] of Object.entries(acts))
        find(name).addEventListener("click", act);
    find("model-choice").addEventListener("change", (event) => {
        values.set("model", event.target.value);
        readServer();
    });
    find("search").addEventListener("input", drawList);
    find("import").addEventListener("click", () => find("import-file").click());
    find("import-file").addEventListener("change", async () => {
        const chosen = [...find("import-file").files];
        find("import-file").value = "";
        await importFiles(chosen);
    });
    find("export-all").addEventListener("click", exportAll);
    addEventListener("pagehide", () => talk.runs.forEach((run) => run.node.text !== "" && store.keep(run.c)));
    document.addEventListener("visibilitychange", () => {
        if (document.visibilityState === "visible" && server.state !== "")
            readServer();
    });
}

prepareDialogs();
prepareQuestion();
prepareKeys();
prepareButtons();
show(store.get(values.get("shown", sessionStorage) ?? "") ?? newConversation(...defaults()));
showState("");
readServer();
find("ask").focus();
