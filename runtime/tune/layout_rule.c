/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/tune/layout_rule.h"

#include <stdio.h>
#include <string.h>

#include "runtime/tune/tune.h"

tern_layout tern_layout_usual(void) {
    return tern_format_layout(TERN_FORMAT_I2_S);
}

tern_layout tern_layout_dense(void) {
    return TERN_LAYOUT_T5R16;
}

tern_layout tern_layout_rule(const tern_layout_probe *p) {
    const uint32_t margin = p->noise > TERN_LAYOUT_MARGIN ? p->noise : TERN_LAYOUT_MARGIN;
    const bool faster = p->threads > 0 && p->ratio < 1000 && 1000 - p->ratio > margin;
    return faster ? tern_layout_dense() : tern_layout_usual();
}

bool tern_layout_is_sure(const tern_layout_probe *p) {
    return p->noise <= TERN_LAYOUT_MARGIN;
}

/* From 1: 0 is no figure. */
static uint32_t figure(double share) {
    const uint32_t n = tern_tune_thousandths(share);
    return n > 0 ? n : 1;
}

tern_layout_probe tern_layout_probe_of(uint32_t threads, uint64_t stream, const double *seconds,
                                       const double *again, size_t rounds) {
    return (tern_layout_probe){.threads = threads,
                               .stream = stream,
                               .ratio = figure(tern_tune_ratio(seconds, 2, rounds, 1)),
                               .noise = figure(tern_tune_noise(seconds, 2, again, rounds))};
}

void tern_layout_reason(const tern_layout_probe *p, char text[TERN_LAYOUT_REASON_BYTES]) {
    const tern_layout layout = tern_layout_rule(p);
    const double less = 100.0 - (double)p->ratio / 10.0, noise = (double)p->noise / 10.0;
    if (layout == tern_layout_dense())
        (void)snprintf(text, TERN_LAYOUT_REASON_BYTES,
                       "memory bounds decoding: a token takes %.1f %% less time than in %s (noise "
                       "%.1f %%)",
                       less, tern_layout_name(tern_layout_usual()), noise);
    else
        (void)snprintf(text, TERN_LAYOUT_REASON_BYTES,
                       "%s does not save enough time: %.1f %% (noise %.1f %%, margin %.1f %%)",
                       tern_layout_name(tern_layout_dense()), less > 0.0 ? less : 0.0, noise,
                       TERN_LAYOUT_MARGIN / 10.0);
}

const tern_layout_probe *tern_layout_find(const tern_layout_probes *probes, uint32_t threads,
                                          uint64_t stream) {
    for (size_t i = 0; i < probes->n; i++)
        if (probes->list[i].threads == threads && probes->list[i].stream == stream)
            return &probes->list[i];
    return NULL;
}

void tern_layout_keep(tern_layout_probes *probes, const tern_layout_probe *probe) {
    tern_layout_probe *list = probes->list;
    size_t i = 0;
    while (i < probes->n && (list[i].threads != probe->threads || list[i].stream != probe->stream))
        i++;
    if (i == TERN_LAYOUT_PROBES) {
        memmove(list, list + 1, (TERN_LAYOUT_PROBES - 1) * sizeof *list);
        i--;
    }
    list[i] = *probe;
    probes->n = i < probes->n ? probes->n : i + 1;
}
