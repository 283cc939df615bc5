/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_ISA_AVX512_H
#define TERN_TESTS_ISA_AVX512_H

/* out[i] = a[i] / b by vf_quotient, for 16 elements. */
void isa_quotient(const float a[16], float b, float out[16]);

#endif
