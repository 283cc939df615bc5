/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/files/gguf/code_shares.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    RUNS = 4,           /* places of a tensor that are sampled, as in file_content.c */
    RUN_BYTES = 4096,   /* a page, 16,384 codes */
    CODES_MIN = 1 << 17 /* codes of the signs: with fewer, it could be chance alone */
};

static const double IMBALANCE = 0.02; /* more imbalance of the signs is doubted */
static const double NEARNESS = 0.25;  /* times the signs' imbalance: another pair with less is taken
                                         for the signs */

/* ---- counting -------------------------------------------------------------------------------- */

static void count_bytes(const uint8_t *bytes, size_t n, tern_code_shares *s) {
    const uint64_t low = UINT64_C(0x5555555555555555);
    for (size_t i = 0; i + 8 <= n; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        const uint64_t ones = word & low, twos = word >> 1 & low;
        s->n[3] += (uint64_t)__builtin_popcountll(ones & twos);
        s->n[2] += (uint64_t)__builtin_popcountll(twos & ~ones);
        s->n[1] += (uint64_t)__builtin_popcountll(ones & ~twos);
        s->n[0] += 32 - (uint64_t)__builtin_popcountll(ones | twos);
    }
}

static void count_tensor(const tern_gguf_tensor *t, tern_code_shares *s) {
    const uint64_t codes = t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3] / 4; /* bytes of codes */
    if (codes <= RUNS * RUN_BYTES) {
        count_bytes(t->data, (size_t)codes, s);
        return;
    }
    for (uint64_t run = 0; run < RUNS; run++)
        count_bytes(t->data + (codes - RUN_BYTES) / (RUNS - 1) * run, RUN_BYTES, s);
}

tern_code_shares tern_code_shares_count(const tern_gguf *file) {
    tern_code_shares s = {{0}};
    for (size_t i = 0; i < tern_gguf_tensor_count(file); i++) {
        const tern_gguf_tensor *t = tern_gguf_tensor_at(file, i);
        if (tern_format_from_gguf(t->type) == TERN_FORMAT_I2_S)
            count_tensor(t, &s);
    }
    return s;
}

/* ---- judging --------------------------------------------------------------------------------- */

static double imbalance(const tern_code_shares *s, int a, int b) {
    const double x = (double)s->n[a], y = (double)s->n[b];
    return x + y > 0.0 ? fabs(x - y) / (x + y) : 0.0;
}

bool tern_code_shares_doubt(const tern_code_shares *s, char text[TERN_DOUBT_BYTES]) {
    const double all = (double)(s->n[0] + s->n[1] + s->n[2] + s->n[3]);
    if (s->n[0] + s->n[2] < CODES_MIN || imbalance(s, 0, 2) < IMBALANCE)
        return false;
    const bool zero_first = imbalance(s, 1, 2) < imbalance(s, 0, 1);
    const double nearest = zero_first ? imbalance(s, 1, 2) : imbalance(s, 0, 1);
    if (nearest > NEARNESS * imbalance(s, 0, 2))
        return false;
    (void)snprintf(text, TERN_DOUBT_BYTES,
                   "%.1f %% of the I2_S codes are 0, %.1f %% are 1, %.1f %% are 2: where 0 and 2 "
                   "mean -1 and +1, they are equally many; it looks like --i2s-map %s (or with the "
                   "signs turned, %s); --i2s-map -1,0,1 says that the file is right",
                   100.0 * (double)s->n[0] / all, 100.0 * (double)s->n[1] / all,
                   100.0 * (double)s->n[2] / all, zero_first ? "0,1,-1" : "1,-1,0",
                   zero_first ? "0,-1,1" : "-1,1,0");
    return true;
}
