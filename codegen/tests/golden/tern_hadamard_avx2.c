/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_hadamard_avx2 of kernels/kernels.toml
 * and template kernels/hadamard.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_hadamard_fn tern_hadamard_avx2;

/*
 * Walsh-Hadamard transform of a row in blocks. Steps at distances 1, 2, 4 ..: x[i] + x[i + h] and
 * x[i] - x[i + h]. The first ones stay in a vector, whose lanes meet those h away.
 */
#include <math.h>

#include "kernels/isa/avx2.h"

/* Steps within vectors. a - b is -1 * b + a, to the bit. */
static void short_steps(const float *x, const float *factors, size_t n, float *y) {
    static const float signs1[8] = {1.0f, -1.0f, 1.0f, -1.0f, 1.0f, -1.0f, 1.0f, -1.0f};
    static const float signs2[8] = {1.0f, 1.0f, -1.0f, -1.0f, 1.0f, 1.0f, -1.0f, -1.0f};
    static const float signs4[8] = {1.0f, 1.0f, 1.0f, 1.0f, -1.0f, -1.0f, -1.0f, -1.0f};
    for (size_t i = 0; i < n; i += 8) {
        vf v = vf_load(x + i);
        if (factors != NULL)
            v = vf_mul(v, vf_load(factors + i));
        v = vf_add(vf_mul(v, vf_load(signs1)), vf_swap_pairs(v));
        v = vf_add(vf_mul(v, vf_load(signs2)), vf_swap2(v));
        v = vf_add(vf_mul(v, vf_load(signs4)), vf_swap4(v));
        vf_store(y + i, v);
    }
}

/* A step between vectors. */
static void long_step(float *y, size_t n, size_t h) {
    for (size_t i = 0; i < n; i += 2 * h)
        for (size_t j = i; j < i + h; j += 8) {
            const vf a = vf_load(y + j);
            const vf b = vf_load(y + j + h);
            vf_store(y + j, vf_add(a, b));
            vf_store(y + j + h, vf_sub(a, b));
        }
}

/* Two steps at once, h and 2 h: four vectors are loaded and stored once for both. */
static void long_steps(float *y, size_t n, size_t h) {
    for (size_t i = 0; i < n; i += 4 * h)
        for (size_t j = i; j < i + h; j += 8) {
            const vf x0 = vf_load(y + j + 0 * h);
            const vf x1 = vf_load(y + j + 1 * h);
            const vf x2 = vf_load(y + j + 2 * h);
            const vf x3 = vf_load(y + j + 3 * h);
            const vf a = vf_add(x0, x1);
            const vf b = vf_sub(x0, x1);
            const vf c = vf_add(x2, x3);
            const vf d = vf_sub(x2, x3);
            vf_store(y + j, vf_add(a, c));
            vf_store(y + j + h, vf_add(b, d));
            vf_store(y + j + 2 * h, vf_sub(a, c));
            vf_store(y + j + 3 * h, vf_sub(b, d));
        }
}

static void scale(float *y, const float *factors, size_t n, float norm) {
    for (size_t i = 0; i < n; i += 8) {
        const vf v = vf_mul(vf_load(y + i), vf_set1(norm));
        vf_store(y + i, factors != NULL ? vf_mul(v, vf_load(factors + i)) : v);
    }
}

void tern_hadamard_avx2(const float *x, const float *before, const float *after, size_t n,
    size_t block, float *y) {
    const float norm = 1.0f / sqrtf((float)block);
    for (size_t i = 0; i < n; i += block) {
        size_t h = 8;
        short_steps(x + i, before != NULL ? before + i : NULL, block, y + i);
        for (; h < block / 2; h *= 4)
            long_steps(y + i, block, h);
        if (h < block)
            long_step(y + i, block, h);
        scale(y + i, after != NULL ? after + i : NULL, block, norm);
    }
}
