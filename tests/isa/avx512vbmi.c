/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/isa/avx512vbmi.h"

#include "kernels/isa/avx512vbmi.h"

void isa_lookup256(const uint8_t table[256], const uint8_t index[64], uint8_t out[64]) {
    _mm512_storeu_si512(out, vb_lookup256(table, vb_load(index)));
}

void isa_trits(const uint8_t codes[64], uint8_t out[5][64]) {
    const vb c = vb_load(codes);
    _mm512_storeu_si512(out[0], vb_trit(c, 0));
    _mm512_storeu_si512(out[1], vb_trit(c, 1));
    _mm512_storeu_si512(out[2], vb_trit(c, 2));
    _mm512_storeu_si512(out[3], vb_trit(c, 3));
    _mm512_storeu_si512(out[4], vb_trit(c, 4));
}
