/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_QUANTIZE_SUPER_H
#define TERN_KERNELS_QUANTIZE_SUPER_H

#include <stdint.h>

/* 256 finite floats as one super-block of the file: docs/numerics.md, "Weights from floats". */
void tern_encode_q4_k(const float *x, uint8_t *block);
void tern_encode_q5_k(const float *x, uint8_t *block);
void tern_encode_q6_k(const float *x, uint8_t *block);

#endif
