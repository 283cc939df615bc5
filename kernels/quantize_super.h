/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_QUANTIZE_SUPER_H
#define TERN_KERNELS_QUANTIZE_SUPER_H

#include <stdint.h>

/*
 * 256 finite floats as one super-block of the file: docs/numerics.md, "Weights from floats". w[256]
 * says how much the squared error of each counts, all above 0; NULL: all alike.
 */
void tern_encode_q2_k(const float *x, const float *w, uint8_t *block);
void tern_encode_q3_k(const float *x, const float *w, uint8_t *block);
void tern_encode_q4_k(const float *x, const float *w, uint8_t *block);
void tern_encode_q5_k(const float *x, const float *w, uint8_t *block);
void tern_encode_q6_k(const float *x, const float *w, uint8_t *block);
void tern_encode_iq4_xs(const float *x, const float *w, uint8_t *block);

#endif
