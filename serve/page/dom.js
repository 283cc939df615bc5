/* SPDX-License-Identifier: Apache-2.0 */
/* Builds elements one by one. Text is never parsed as markup. */

export const find = (id) => document.getElementById(id);

/* Makes an element with attributes; a name that begins with "on" is a listener. Children are nodes
 * or texts. */
export function make(name, attributes = {}, ...children) {
    const e = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
        if (key.startsWith("on"))
            e.addEventListener(key.slice(2), value);
        else if (value === true)
            e.setAttribute(key, "");
        else if (value !== false && value !== null && value !== undefined)
            e.setAttribute(key, value);
    }
    e.append(...children.filter((child) => child !== null));
    return e;
}

export function button(text, onclick, attributes = {}) {
    return make("button", {type: "button", onclick, ...attributes}, text);
}

const SVG = "http://www.w3.org/2000/svg";

export function draw(name, attributes = {}) {
    const e = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes))
        e.setAttribute(key, value);
    return e;
}

/* Announces a sentence to screen readers, without moving the focus. */
export function announce(text) {
    const place = find("news");
    place.textContent = "";
    setTimeout(() => (place.textContent = text), 50);
}

export async function copy(text) {
    if (navigator.clipboard) {
        await navigator.clipboard.writeText(text);
        return;
    }
    const area = make("textarea", {class: "unseen", "aria-hidden": "true"}); /* the old way, without https */
    const before = document.activeElement;
    area.value = text;
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    before?.focus();
    if (!copied)
        throw new Error("the browser does not let the page copy");
}

/* Makes a button that copies what `text()` returns, and announces it. */
export function copyButton(text, label = "Copy") {
    return button(label, async (event) => {
        const b = event.currentTarget;
        try {
            await copy(text());
            b.textContent = "Copied";
            announce("Copied");
        } catch {
            b.textContent = "Not copied";
        }
        setTimeout(() => (b.textContent = label), 1600);
    });
}

/* Makes a bar that shows how much of something is used. */
export function bar(label) {
    return make("span", {class: "part", role: "meter", "aria-label": label, "aria-valuemin": 0}, make("span"));
}

export function showBar(e, used, all) {
    e.setAttribute("aria-valuemax", all);
    e.setAttribute("aria-valuenow", used);
    e.firstChild.style.width = `${all > 0 ? Math.min(100, (100 * used) / all) : 0}%`;
    return e;
}

/* Formats a number for people: 1234567 is 1,234,567. */
export function count(n) {
    return Number.isFinite(n) ? Math.round(n).toLocaleString("en") : "–";
}

export function seconds(s) {
    if (!Number.isFinite(s))
        return "–";
    return s < 1 ? `${Math.round(s * 1000)} ms` : s < 60 ? `${s.toFixed(s < 10 ? 2 : 1)} s` : `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
}
