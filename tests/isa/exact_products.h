/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_ISA_EXACT_PRODUCTS_H
#define TERN_TESTS_ISA_EXACT_PRODUCTS_H

#include <stddef.h>

/* Two verbs by themselves: rounded[i] = vf_round13 of x[i]; out[i] = vf_mac_exact of sum[i],
 * rounded[i] and half[i]. n is a multiple of 16. */
typedef void exact_products_fn(const float *x, const float *half, const float *sum, size_t n,
                               float *rounded, float *out);

/* exact_products.c is compiled once for each instruction set with float verbs of its own. */
exact_products_fn exact_products_scalar;
exact_products_fn exact_products_sse41;
exact_products_fn exact_products_avx2;
exact_products_fn exact_products_avx512;
exact_products_fn exact_products_neon;

#endif
