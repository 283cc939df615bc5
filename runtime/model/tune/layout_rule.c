/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/tune/layout_rule.h"

#include <stdio.h>
#include <string.h>

#include "runtime/model/tune/tune.h"

tern_layout tern_layout_usual(void) {
    return tern_format_layout(TERN_FORMAT_I2_S);
}

static const uint32_t pass_tokens[TERN_LAYOUT_PASSES] = {8, 16};

uint32_t tern_layout_pass_tokens(size_t i) {
    return pass_tokens[i];
}

size_t tern_layout_passes(uint32_t together) {
    size_t n = 0;
    while (n < TERN_LAYOUT_PASSES && pass_tokens[n] <= together)
        n++;
    return n;
}

/* True if a token alone takes clearly less time in base 3. */
static bool saves_alone(const tern_layout_probe *p) {
    const uint32_t margin = p->noise > TERN_LAYOUT_MARGIN ? p->noise : TERN_LAYOUT_MARGIN;
    return p->threads > 0 && p->ratio < 1000 && 1000 - p->ratio > margin;
}

/* The first pass that counts and may take longer in base 3; tern_layout_passes: none. */
static size_t slower_pass(const tern_layout_probe *p, uint32_t together) {
    const size_t n = tern_layout_passes(together);
    size_t i = 0;
    while (i < n && p->passes[i] > 0 && p->passes[i] <= 1000)
        i++;
    return i;
}

tern_layout tern_layout_rule(const tern_layout_probe *p, uint32_t together) {
    const bool faster = saves_alone(p) && slower_pass(p, together) == tern_layout_passes(together);
    return faster ? p->dense : tern_layout_usual();
}

/* Passes decide nothing if a token alone saves too little. */
bool tern_layout_is_enough(const tern_layout_probe *p, uint32_t together) {
    const size_t i = slower_pass(p, together);
    return !saves_alone(p) || i == tern_layout_passes(together) || p->passes[i] > 0;
}

bool tern_layout_is_sure(const tern_layout_probe *p) {
    const uint32_t limit = 1000 - TERN_LAYOUT_MARGIN;
    const uint32_t apart = p->ratio > limit ? p->ratio - limit : limit - p->ratio;
    return p->noise <= TERN_LAYOUT_MARGIN || apart > p->noise;
}

/* A share in thousandths, at least 1: 0 means that there is no figure. */
static uint32_t figure(double share) {
    const uint32_t n = tern_tune_thousandths(share);
    return n > 0 ? n : 1;
}

double tern_layout_limit(bool alone) {
    return alone ? 1.0 - (double)TERN_LAYOUT_MARGIN / 1000.0 : 1.0;
}

tern_layout_probe tern_layout_probe_of(uint32_t threads, uint64_t stream, tern_layout dense,
                                       const tern_estimate *alone) {
    return (tern_layout_probe){.threads = threads,
                               .stream = stream,
                               .dense = dense,
                               .ratio = figure(alone->ratio),
                               .noise = figure(alone->within)};
}

void tern_layout_add_pass(tern_layout_probe *p, size_t i, const tern_estimate *pass) {
    const uint32_t noise = figure(pass->within);
    p->passes[i] = figure(pass->ratio);
    p->noise = noise > p->noise ? noise : p->noise;
}

/* Writes why base 3 is not taken although a token alone saves time in it. */
static void pass_reason(const tern_layout_probe *p, uint32_t together,
                        char text[TERN_LAYOUT_REASON_BYTES]) {
    const size_t i = slower_pass(p, together);
    const char *dense = tern_layout_name(p->dense);
    if (p->passes[i] == 0)
        (void)snprintf(text, TERN_LAYOUT_REASON_BYTES,
                       "no pass of %u tokens, one for each sequence, was measured in %s",
                       pass_tokens[i], dense);
    else
        (void)snprintf(text, TERN_LAYOUT_REASON_BYTES,
                       "a pass of %u tokens, one for each sequence, takes %.1f %% longer in %s, "
                       "although one of a single token takes %.1f %% less time",
                       pass_tokens[i], (double)p->passes[i] / 10.0 - 100.0, dense,
                       100.0 - (double)p->ratio / 10.0);
}

void tern_layout_reason(const tern_layout_probe *p, uint32_t together,
                        char text[TERN_LAYOUT_REASON_BYTES]) {
    const bool is_dense = tern_layout_rule(p, together) != tern_layout_usual();
    const double less = 100.0 - (double)p->ratio / 10.0, noise = (double)p->noise / 10.0;
    if (is_dense)
        (void)snprintf(text, TERN_LAYOUT_REASON_BYTES,
                       "memory bounds decoding: a token takes %.1f %% less time than in %s (noise "
                       "%.1f %%)",
                       less, tern_layout_name(tern_layout_usual()), noise);
    else if (saves_alone(p))
        pass_reason(p, together, text);
    else
        (void)snprintf(text, TERN_LAYOUT_REASON_BYTES,
                       "%s does not save enough time: %.1f %% (noise %.1f %%, margin %.1f %%)",
                       tern_layout_name(p->dense), less > 0.0 ? less : 0.0, noise,
                       (double)TERN_LAYOUT_MARGIN / 10.0);
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
