/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_attend_f16_avx2 of kernels/kernels.toml
 * and template kernels/attend.c.j2. Do not edit.
 */

#include "gen/kernels.h"

/*
 * Causal attention of a group of query heads over one key/value head, in chunks of
 * TERN_ATTEND_CHUNK positions that are merged in order (docs/numerics.md).
 */
#include "kernels/isa/avx2.h"

#include "kernels/isa/vmath.h"
/* A cache row, the keys or values of one position, is dim elements. */
typedef uint16_t element;

static inline size_t row_elements(size_t dim) { return dim; }

static inline vf cached(const element *row, size_t i, size_t offset) {
    return vf_load_f16(row + i + offset);
}

static inline vf cached_n(const element *row, size_t i, size_t offset, size_t n) {
    return vf_load_f16_n(row + i + offset, n);
}

static inline float dot(const float *q, const element *k, size_t dim) {
    vf s0 = vf_zero();
    vf s1 = vf_zero();
    size_t i = 0;
    for (; i + TERN_LANES <= dim; i += TERN_LANES) {
        s0 = vf_add(s0, vf_mul(vf_load(q + i + 0), cached(k, i, 0)));
        s1 = vf_add(s1, vf_mul(vf_load(q + i + 8), cached(k, i, 8)));
    }
    if (i < dim) {
        const size_t n0 = tail_lanes(dim - i, 0, 8);
        const vf q0 = vf_load_fill(q + i + 0, n0, 0.0f);
        s0 = vf_add(s0, vf_mul(q0, cached_n(k, i, 0, n0)));
        const size_t n1 = tail_lanes(dim - i, 8, 8);
        const vf q1 = vf_load_fill(q + i + 8, n1, 0.0f);
        s1 = vf_add(s1, vf_mul(q1, cached_n(k, i, 8, n1)));
    }
    return vf_sum16(s0, s1);
}

/* e[j] = exp(s[j] - m) in place for n <= TERN_ATTEND_CHUNK scores,
    zeros behind; returns the sum. */
static inline float weigh(float *s, size_t n, float m) {
    const vf largest = vf_set1(m);
    vf sum0 = vf_zero();
    vf sum1 = vf_zero();
    for (size_t j = 0; j < n; j += TERN_LANES) {
        const vf e0 = vf_first_n(vf_exp(vf_sub(vf_load(s + j + 0), largest)),
                                tail_lanes(n - j, 0, 8));
        vf_store(s + j + 0, e0);
        sum0 = vf_add(sum0, e0);
        const vf e1 = vf_first_n(vf_exp(vf_sub(vf_load(s + j + 8), largest)),
                                tail_lanes(n - j, 8, 8));
        vf_store(s + j + 8, e1);
        sum1 = vf_add(sum1, e1);
    }
    return vf_sum16(sum0, sum1);
}

/* o[i] = sum over j of e[j] * v[j][i], j increasing. Several vectors at once hide the latency. */
static inline void weighted_sum(const float *e, const element *v, size_t n, size_t dim, float *o) {
    size_t i = 0;
    for (; i + 32 <= dim; i += 32) {
        vf o0 = vf_zero();
        vf o1 = vf_zero();
        vf o2 = vf_zero();
        vf o3 = vf_zero();
        for (size_t j = 0; j < n; j++) {
            const vf w = vf_set1(e[j]);
            const element *row = v + j * row_elements(dim);
            o0 = vf_add(o0, vf_mul(w, cached(row, i, 0)));
            o1 = vf_add(o1, vf_mul(w, cached(row, i, 8)));
            o2 = vf_add(o2, vf_mul(w, cached(row, i, 16)));
            o3 = vf_add(o3, vf_mul(w, cached(row, i, 24)));
        }
        vf_store(o + i + 0, o0);
        vf_store(o + i + 8, o1);
        vf_store(o + i + 16, o2);
        vf_store(o + i + 24, o3);
    }
    for (; i + 8 <= dim; i += 8) {
        vf o0 = vf_zero();
        for (size_t j = 0; j < n; j++) {
            const vf w = vf_set1(e[j]);
            const element *row = v + j * row_elements(dim);
            o0 = vf_add(o0, vf_mul(w, cached(row, i, 0)));
        }
        vf_store(o + i + 0, o0);
    }
    if (i < dim) {
        const size_t rest = dim - i;
        vf o0 = vf_zero();
        for (size_t j = 0; j < n; j++)
            o0 = vf_add(o0, vf_mul(vf_set1(e[j]), cached_n(v + j * row_elements(dim), i, 0, rest)));
        vf_store_n(o + i, o0, rest);
    }
}

/* exp of one number, by the formula that all lanes use. */
static inline float exp_one(float x) {
    float lanes[8];
    vf_store(lanes, vf_exp(vf_set1(x)));
    return lanes[0];
}

/* total = total * a + part * b */
static inline void merge(float *total, float a, const float *part, float b, size_t dim) {
    const vf va = vf_set1(a);
    const vf vb_ = vf_set1(b);
    for (size_t i = 0; i < dim; i += 8) { /* both are padded to whole vectors */
        const vf kept = vf_mul(vf_load(total + i), va);
        vf_store(total + i, vf_add(kept, vf_mul(vf_load(part + i), vb_)));
    }
}

static inline void divide(const float *total, float sum, size_t dim, float *out) {
    const vf divisor = vf_set1(sum);
    size_t i = 0;
    for (; i + 8 <= dim; i += 8)
        vf_store(out + i, vf_div(vf_load(total + i), divisor));
    if (i < dim)
        vf_store_n(out + i, vf_div(vf_load(total + i), divisor), dim - i);
}

/* s[j] += mask[j]; returns the new maximum. */
static float add_mask(float *s, const float *mask, size_t n) {
    float m = s[0] + mask[0];
    for (size_t j = 0; j < n; j++) {
        s[j] += mask[j];
        m = s[j] > m ? s[j] : m;
    }
    return m;
}

static void attend_head(const tern_attend_args *a, const float *q, float *out) {
    const size_t dim = a->dim;
    const size_t padded = (dim + TERN_LANES - 1) / TERN_LANES * TERN_LANES;
    float *const s = a->scratch;
    float *const part = s + TERN_ATTEND_CHUNK;
    float *const total = part + padded;
    float largest = 0.0f;
    float sum = 0.0f;
    memset(part, 0, 2 * padded * sizeof *part);
    for (size_t first = 0; first < a->positions; first += TERN_ATTEND_CHUNK) {
        const size_t left = a->positions - first;
        const size_t n = left < TERN_ATTEND_CHUNK ? left : TERN_ATTEND_CHUNK;
        const element *k = (const element *)a->k + first * row_elements(dim);
        float m = 0.0f;
        for (size_t j = 0; j < n; j++) {
            s[j] = dot(q, k + j * row_elements(dim), dim) * a->scale;
            m = j == 0 || s[j] > m ? s[j] : m;
        }
        if (a->mask)
            m = add_mask(s, a->mask + first, n);
        for (size_t j = n; j < (n + TERN_LANES - 1) / TERN_LANES * TERN_LANES; j++)
            s[j] = m; /* weigh() reads whole vectors */
        const float chunk_sum = weigh(s, n, m);
        const element *v = (const element *)a->v + first * row_elements(dim);
        if (first == 0) {
            weighted_sum(s, v, n, dim, total);
            largest = m;
            sum = chunk_sum;
            continue;
        }
        weighted_sum(s, v, n, dim, part);
        const float new_largest = m > largest ? m : largest;
        const float keep = exp_one(largest - new_largest);
        const float take = exp_one(m - new_largest);
        merge(total, keep, part, take, dim);
        sum = sum * keep + chunk_sum * take;
        largest = new_largest;
    }
    divide(total, sum, dim, out);
}

void tern_attend_f16_avx2(const tern_attend_args *args) {
    for (size_t h = 0; h < args->group; h++)
        attend_head(args, args->q + h * args->dim, args->out + h * args->dim);
}
