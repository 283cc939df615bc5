/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of /metrics as numbers. */

/* Returns {values: name -> number, buckets: name -> [[upper bound, count], ...]}. */
export function parseMetrics(text) {
    const values = new Map(), buckets = new Map();
    for (const line of text.split("\n")) {
        const blank = line.lastIndexOf(" ");
        if (line.startsWith("#") || blank < 0)
            continue;
        const name = line.slice(0, blank), value = Number(line.slice(blank + 1));
        const bound = /^(\w+)_bucket\{le="([^"]+)"\}$/.exec(name);
        if (bound === null) {
            values.set(name, value);
            continue;
        }
        if (!buckets.has(bound[1]))
            buckets.set(bound[1], []);
        buckets.get(bound[1]).push([bound[2] === "+Inf" ? Infinity : Number(bound[2]), value]);
    }
    return {values, buckets};
}

/* Returns quantile q of a histogram, interpolated between two bounds as Prometheus does; NaN if
 * nothing was counted. `before`: earlier counts, which are subtracted. */
export function quantile(buckets, q, before = []) {
    const counts = buckets.map(([bound, n], i) => [bound, n - (before[i]?.[1] ?? 0)]);
    const all = counts.at(-1)?.[1] ?? 0;
    let low = 0, below = 0;
    if (!(all > 0))
        return NaN;
    for (const [bound, n] of counts) {
        if (n >= q * all && n > below)
            return bound === Infinity ? low : low + ((bound - low) * (q * all - below)) / (n - below);
        low = bound;
        below = n;
    }
    return low;
}

/* Returns the labels of a name such as tern_build_info{version="1",isa="avx2"}. */
export function labels(values, name) {
    for (const key of values.keys())
        if (key.startsWith(`${name}{`))
            return Object.fromEntries([...key.matchAll(/(\w+)="([^"]*)"/g)].map((m) => [m[1], m[2]]));
    return {};
}
