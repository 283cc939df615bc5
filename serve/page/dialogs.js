/* SPDX-License-Identifier: Apache-2.0 */
/* Dialogs over the page. They are the browser's own, which keep the focus inside and close with
 * Escape. */

import {find, make} from "./dom.js";
import {getJson, key} from "./server.js";

/* name, label, limits of the field, name in the server's /props */
const FIELDS = [
    ["temperature", "Temperature", {min: 0, max: 1000, step: "any"}, "temperature"],
    ["top_p", "Top p", {min: 0, max: 1, step: "any"}, "top_p"],
    ["top_k", "Top k", {min: -1, max: 2147483647, step: 1}, "top_k"],
    ["min_p", "Min p", {min: 0, max: 1, step: "any"}, "min_p"],
    ["repetition_penalty", "Repetition penalty", {min: 0.01, max: 100, step: "any"}, "repeat_penalty"],
    ["presence_penalty", "Presence penalty", {min: -100, max: 100, step: "any"}, "presence_penalty"],
    ["frequency_penalty", "Frequency penalty", {min: -100, max: 100, step: "any"}, "frequency_penalty"],
    ["seed", "Seed", {min: 0, max: Number.MAX_SAFE_INTEGER, step: 1}, "seed"],
    ["max_tokens", "Most tokens", {min: 1, max: 2147483647, step: 1}, "n_predict"],
];

/* Opens a dialog; true if it was closed by its main button. */
export function openDialog(name) {
    const dialog = find(`${name}-dialog`);
    return new Promise((resolve) => {
        dialog.returnValue = "";
        dialog.addEventListener("close", () => resolve(dialog.returnValue === "save"), {once: true});
        dialog.showModal();
    });
}

export function prepareDialogs() {
    for (const b of document.querySelectorAll("[data-close]"))
        b.addEventListener("click", () => b.closest("dialog").close());
    for (const dialog of document.querySelectorAll("dialog"))
        dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
    for (const [name, label, takes] of FIELDS)
        find("fields").append(make("label", {}, make("span", {}, label),
                                   make("input", {type: "number", id: `f-${name}`, inputmode: "decimal", ...takes})));
    find("settings-clear").addEventListener("click", () => {
        find("system").value = "";
        for (const [name] of FIELDS)
            find(`f-${name}`).value = "";
        find("stops").value = find("schema").value = "";
        checkSchema();
    });
    find("schema").addEventListener("input", checkSchema);
}

/* Reads the schema of the field; null: it is empty. Throws if it is not an object of JSON. */
function schemaOf(text) {
    if (text.trim() === "")
        return null;
    const schema = JSON.parse(text);
    if (typeof schema !== "object" || schema === null || Array.isArray(schema))
        throw new TypeError("it is not an object");
    return schema;
}

/* The browser keeps the dialog open while the schema cannot be read, and says why. */
function checkSchema() {
    try {
        schemaOf(find("schema").value);
        find("schema").setCustomValidity("");
    } catch (e) {
        find("schema").setCustomValidity(`This cannot be a JSON schema: ${e.message}`);
    }
}

function usualText(name, value) {
    if (name === "seed" && value === 4294967295)
        return "drawn";
    if (name === "max_tokens" && value < 0)
        return "until the context is full";
    return typeof value === "number" ? String(Number(value.toPrecision(6))) : "";
}

/* Shows the server's defaults as placeholders of the fields. */
async function showUsual() {
    try {
        const usual = (await getJson("props")).default_generation_settings.params;
        for (const [name, , , theirs] of FIELDS)
            find(`f-${name}`).placeholder = usualText(name, usual[theirs]);
    } catch {
        /* the fields have no placeholders then */
    }
}

/* Asks for settings: {system, sampling}; null: nothing was changed. */
export async function askSettings({system, sampling}) {
    find("system").value = system;
    for (const [name] of FIELDS)
        find(`f-${name}`).value = sampling[name] ?? "";
    find("stops").value = (sampling.stop ?? []).join("\n");
    find("schema").value = sampling.response_format ? JSON.stringify(sampling.response_format.json_schema.schema, null, 2) : "";
    checkSchema();
    showUsual();
    if (!(await openDialog("settings")))
        return null;
    const set = {};
    for (const [name] of FIELDS)
        if (find(`f-${name}`).value !== "")
            set[name] = Number(find(`f-${name}`).value);
    const stop = find("stops").value.split("\n").filter((line) => line !== "");
    if (stop.length > 0)
        set.stop = stop;
    const schema = schemaOf(find("schema").value);
    if (schema !== null)
        set.response_format = {type: "json_schema", json_schema: {name: "answer", schema}};
    return {system: find("system").value, sampling: set};
}

/* Asks for the key. True if one was entered or removed. */
export async function askKey() {
    find("key-text").value = key.get();
    find("key-keep").checked = key.isKept();
    if (!(await openDialog("key")))
        return false;
    key.set(find("key-text").value.trim(), find("key-keep").checked);
    find("key-text").value = "";
    return true;
}

export async function askTitle(title) {
    find("rename-text").value = title;
    const asked = openDialog("rename");
    find("rename-text").select();
    return (await asked) ? find("rename-text").value.trim() : null;
}

export async function askDelete(title, n) {
    find("delete-text").textContent = `“${title}” with ${n} message${n === 1 ? "" : "s"} is deleted from this browser.`;
    return openDialog("delete");
}
