/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_ISA_AVX512VBMI_H
#define TERN_TESTS_ISA_AVX512VBMI_H

/* Verbs of kernels/isa/avx512vbmi.h as functions, compiled with the flags of that set. */

#include <stdint.h>

void isa_lookup256(const uint8_t table[256], const uint8_t index[64], uint8_t out[64]);

/* out[n][i]: digit n of the base-3 byte codes[i], by vb_trit. */
void isa_trits(const uint8_t codes[64], uint8_t out[5][64]);

#endif
