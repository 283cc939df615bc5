/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities derived from measured times: bytes, bandwidth, weights per second. */

#include "tern/inspect.h"
#include "tools/speed/speed.h"

double bench_ratio(double x, double y) {
    return y > 0.0 ? x / y : 0.0;
}

uint64_t bench_cache_bytes(const bench *b, const bench_point *p) {
    if (p->n_decode == 0)
        return 0;
    /*
     * Token i of n attends to the context (at least one token), itself, and the i tokens before it.
     */
    const uint64_t context = p->depth > 0 ? p->depth : 1;
    const uint64_t twice = 2 * context + p->n_decode + 1;
    return tern_model_kv_bytes(b->l.model, 1, loader_kv_format(b->o)) * twice / 2;
}

uint64_t bench_token_bytes(const bench *b, const bench_point *p) {
    return b->l.info.weight_bytes + bench_cache_bytes(b, p);
}

/* Bytes of experts that n tokens read beyond those of one, at most: each token is assumed to choose
 * other experts as long as there are any. */
static double more_experts_bytes(const tern_model *m, size_t n) {
    const tern_linear *linear;
    double bytes = 0.0;
    for (size_t i = 0; (linear = tern_model_linear(m, i)) != NULL; i++) {
        tern_linear_info matrix;
        tern_linear_describe(m, linear, &matrix);
        if (matrix.experts == 0)
            continue;
        const double all = (double)matrix.experts, one = (double)matrix.experts_used;
        const double taken = (double)n * one < all ? (double)n * one : all;
        bytes += (taken - one) * (double)matrix.bytes / all;
    }
    return bytes;
}

double bench_shared_bytes(const bench *b, size_t n) {
    const double weights = (double)b->l.info.weight_bytes + more_experts_bytes(b->l.model, n);
    return weights / (double)n + (double)bench_cache_bytes(b, &b->main);
}

double bench_gbs(const bench *b, const bench_point *p) {
    return series_median(&p->decode_tps) * (double)bench_token_bytes(b, p) * 1e-9;
}

double bench_fraction(const bench *b, const bench_point *p) {
    return bench_ratio(bench_gbs(b, p), series_median(&p->read_gbs));
}

double bench_prefill_gweights(const bench *b, const bench_point *p) {
    const tern_model_info *i = &b->l.info;
    const double heads = bench_ratio((double)i->head_weights, (double)p->n_prompt);
    return series_median(&p->prefill_tps) * ((double)i->block_weights + heads) * 1e-9;
}

double bench_decode_gweights(const bench *b, const bench_point *p) {
    const tern_model_info *i = &b->l.info;
    return series_median(&p->decode_tps) * (double)(i->block_weights + i->head_weights) * 1e-9;
}

double bench_intensity(const bench *b) {
    const tern_model_info *i = &b->l.info;
    return bench_ratio(2.0 * (double)(i->block_weights + i->head_weights), (double)i->weight_bytes);
}
