/* SPDX-License-Identifier: Apache-2.0 */
/* The view of the engine's current work. It asks the server once a second while it is visible. */

import {bar, button, count, draw, make, seconds, showBar} from "./dom.js";
import {labels, parseMetrics, quantile} from "./figures.js";
import {getJson, getText} from "./server.js";

const EVERY = 1000, KEPT = 90, MOST_CELLS = 1024, LEAST_IN_ROW = 32, MOST_IN_ROW = 64;

/* A curve of the last values, from 0 to the highest one. */
class Curve {
    constructor(title) {
        this.values = [];
        this.line = draw("path", {class: "line"});
        this.area = draw("path", {class: "area"});
        this.svg = draw("svg", {viewBox: `0 0 ${KEPT - 1} 40`, preserveAspectRatio: "none", class: "curve", "aria-hidden": "true"});
        this.svg.append(this.area, this.line);
        this.number = make("span", {class: "figure"}, "–");
        this.most = make("span", {class: "soft"});
        this.element = make("section", {class: "tile wide-tile"}, make("h2", {}, title),
                            make("p", {}, this.number, " ", this.most), this.svg);
    }

    add(value, text) {
        this.values.push(Number.isFinite(value) ? value : 0);
        this.values.splice(0, this.values.length - KEPT);
        const top = Math.max(...this.values, 1e-9);
        const from = KEPT - this.values.length;
        const points = this.values.map((v, i) => `${from + i} ${(38 - (36 * v) / top).toFixed(2)}`);
        this.line.setAttribute("d", `M${points.join("L")}`);
        this.area.setAttribute("d", `M${from} 40L${points.join("L")}L${KEPT - 1} 40z`);
        this.number.textContent = text;
        this.most.textContent = top > 1e-6 ? `highest ${count(top)}` : "";
    }
}

class Tile {
    constructor(title, note) {
        this.number = make("p", {class: "figure"}, "–");
        this.note = make("p", {class: "soft"}, note);
        this.element = make("section", {class: "tile"}, make("h2", {}, title), this.number, this.note);
    }

    show(number, note) {
        this.number.textContent = number;
        if (note !== undefined)
            this.note.textContent = note;
    }
}

/* Shows all pages of the cache as small squares: used ones, then kept ones, then free ones. */
class Pages {
    constructor() {
        this.svg = draw("svg", {class: "pages", role: "img", "aria-label": "Pages of the cache"});
        this.parts = ["used", "kept", "free"].map((name) => {
            const path = draw("path", {class: name});
            this.svg.append(path);
            const number = make("strong", {}, "–");
            return {name, path, number, element: make("li", {class: name}, number, ` ${name}`)};
        });
        this.note = make("p", {class: "soft"});
        this.element = make("section", {class: "tile wide-tile"}, make("h2", {}, "Pages of keys and values"), this.svg,
                            make("ul", {class: "legend"}, ...this.parts.map((p) => p.element)), this.note);
    }

    show(used, kept, all) {
        const each = Math.max(1, Math.ceil(all / MOST_CELLS));
        const cells = Math.ceil(all / each);
        const columns = Math.min(MOST_IN_ROW, Math.max(LEAST_IN_ROW, cells));
        const counts = [used, kept, all - used - kept];
        let at = 0, before = 0;
        this.parts.forEach((part, k) => {
            before += counts[k];
            const end = k === 2 ? cells : Math.min(cells, Math.ceil(before / each));
            let d = "";
            for (; at < end; at++)
                d += `M${(at % columns) * 10 + 1} ${Math.floor(at / columns) * 10 + 1}h8v8h-8z`;
            part.path.setAttribute("d", d);
            part.number.textContent = count(counts[k]);
        });
        this.svg.setAttribute("viewBox", `0 0 ${10 * columns} ${10 * Math.max(1, Math.ceil(cells / columns))}`);
        this.svg.setAttribute("aria-label", `Of ${count(all)} pages ${count(used)} are used, ${count(kept)} kept, ${count(counts[2])} free`);
        this.note.textContent = each > 1 ? `A square is ${each} pages of 64 positions.` : "A square is a page of 64 positions.";
    }
}

/* Shows the answers in work, one in each row. */
class Rows {
    constructor() {
        this.body = make("tbody");
        this.none = make("p", {class: "soft"}, "No answer is being written.");
        this.table = make("table", {}, make("thead", {}, make("tr", {}, ...["Request", "Prompt", "Written", "At most", "Positions in use"]
            .map((name) => make("th", {scope: "col"}, name)))), this.body);
        this.place = make("div", {class: "table", tabindex: "0", role: "region", "aria-label": "Answers"}, this.table);
        this.element = make("section", {class: "tile wide-tile"}, make("h2", {}, "Answers"), this.none, this.place);
    }

    show(slots) {
        const busy = slots.filter((s) => s.is_processing);
        this.none.hidden = busy.length > 0;
        this.place.hidden = busy.length === 0;
        this.body.replaceChildren(...busy.map((s) => {
            const next = s.next_token ?? {};
            const used = s.n_prompt_tokens + next.n_decoded;
            return make("tr", {}, make("td", {}, String(s.id_task)), make("td", {}, count(s.n_prompt_tokens)), make("td", {}, count(next.n_decoded)),
                        make("td", {}, count(next.n_decoded + next.n_remain)),
                        make("td", {}, showBar(bar("Positions in use"), used, s.n_ctx), ` ${count(used)} of ${count(s.n_ctx)}`));
        }));
    }
}

export class Engine {
    /* `failed(e)` is called if the server does not report its state. */
    constructor(place, failed) {
        this.failed = failed;
        this.timer = null;
        this.before = null;
        this.speed = new Curve("Tokens a second");
        this.passes = new Curve("Passes a second");
        this.running = new Tile("Running", "answers that are computed");
        this.waiting = new Tile("Waiting", "for their turn");
        this.first = new Tile("Time to the first token", "no answer yet");
        this.between = new Tile("Between tokens", "no answer yet");
        this.hits = new Tile("Found in the cache", "of all tokens of prompts");
        this.memory = new Tile("Memory", "that the process holds");
        this.pages = new Pages();
        this.rows = new Rows();
        this.build = make("p", {class: "soft"});
        this.state = make("p", {class: "card", hidden: true});
        const tiles = [this.running, this.waiting, this.first, this.between, this.hits, this.memory, this.speed, this.passes, this.pages, this.rows];
        place.append(make("div", {class: "engine"}, make("h1", {}, "Engine"), this.state,
                          make("div", {class: "tiles"}, ...tiles.map((t) => t.element)), this.build));
        document.addEventListener("visibilitychange", () => this.look(this.wanted));
    }

    /* Starts or stops asking. Nothing is asked while the page is hidden. */
    look(wanted) {
        this.wanted = wanted;
        const looks = wanted && document.visibilityState === "visible";
        if (looks && this.timer === null) {
            this.timer = 0;
            this.before = null;
            this.ask();
        } else if (!looks && this.timer !== null) {
            clearTimeout(this.timer);
            this.timer = null;
        }
    }

    async ask() {
        try {
            const [text, slots] = await Promise.all([getText("metrics"), getJson("slots")]);
            this.state.hidden = true;
            this.show(parseMetrics(text), slots);
        } catch (e) {
            this.before = null;
            this.state.hidden = false;
            this.state.replaceChildren(e.message, e.kind === "key" ? button("Enter the key", () => this.failed(e, true)) : "");
            this.failed(e, false);
        }
        if (this.timer !== null)
            this.timer = setTimeout(() => this.ask(), EVERY);
    }

    show({values, buckets}, slots) {
        const v = (name) => values.get(`tern_${name}`) ?? NaN;
        const now = {time: performance.now() / 1000, tokens: v("generated_tokens_total"), passes: v("passes_total")};
        const before = this.before ?? now;
        const dt = Math.max(now.time - before.time, 1e-9);
        const speed = this.before ? Math.max(0, now.tokens - before.tokens) / dt : NaN;
        const passes = this.before ? Math.max(0, now.passes - before.passes) / dt : NaN;
        this.before = now;
        if (Number.isFinite(speed)) {
            this.speed.add(speed, speed.toFixed(speed < 10 ? 1 : 0));
            this.passes.add(passes, passes.toFixed(passes < 10 ? 1 : 0));
        }
        this.running.show(count(v("answers_running")));
        this.waiting.show(count(v("answers_waiting")));
        this.showTimes(buckets);
        const prompts = v("prompt_tokens_total");
        this.hits.show(prompts > 0 ? `${Math.round((100 * v("prefix_cache_hits_total")) / prompts)} %` : "–", `of ${count(prompts)} tokens of prompts`);
        this.memory.show(`${count((values.get("process_resident_memory_bytes") ?? NaN) / 1048576)} MiB`);
        this.pages.show(v("cache_pages_used"), v("cache_pages_kept"), v("cache_pages"));
        this.rows.show(slots);
        const build = labels(values, "tern_build_info");
        this.build.textContent = `tern ${build.version ?? ""} · ${build.isa ?? ""} · ${build.fingerprint ?? ""} · ${count(v("requests_total"))} requests, ${count(now.tokens)} tokens of answers since the start`;
    }

    showTimes(buckets) {
        for (const [tile, name] of [[this.first, "time_to_first_token"], [this.between, "inter_token_latency"]]) {
            const [half, most] = [0.5, 0.95].map((q) => quantile(buckets.get(`tern_${name}_seconds`) ?? [], q));
            tile.show(seconds(half), Number.isNaN(half) ? "no answer yet" : `half are quicker; 95 of 100 take at most ${seconds(most)}`);
        }
    }
}
