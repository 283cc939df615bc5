/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/isa/avx512vbmi.h"

#include "kernels/isa/avx512vbmi.h"

void isa_lookup256(const uint8_t table[256], const uint8_t index[64], uint8_t out[64]) {
    _mm512_storeu_si512(out, vb_lookup256(table, vb_load(index)));
}
