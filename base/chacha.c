/* SPDX-License-Identifier: Apache-2.0 */
#include "base/chacha.h"

#include <string.h>

enum { DOUBLE_ROUNDS = 4, WORDS = 16 };

static uint32_t rotate(uint32_t x, unsigned bits) {
    return x << bits | x >> (32 - bits);
}

static uint32_t load_le(const uint8_t *b) {
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static void quarter_round(uint32_t *x, int a, int b, int c, int d) {
    x[a] += x[b];
    x[d] = rotate(x[d] ^ x[a], 16);
    x[c] += x[d];
    x[b] = rotate(x[b] ^ x[c], 12);
    x[a] += x[b];
    x[d] = rotate(x[d] ^ x[a], 8);
    x[c] += x[d];
    x[b] = rotate(x[b] ^ x[c], 7);
}

/* Computes the block of the current counter into output and moves the counter on. */
static void next_block(tern_chacha *c) {
    uint32_t *x = c->output;
    memcpy(x, c->input, sizeof c->input);
    for (int i = 0; i < DOUBLE_ROUNDS; i++) {
        for (int j = 0; j < 4; j++)
            quarter_round(x, j, 4 + j, 8 + j, 12 + j);
        for (int j = 0; j < 4; j++)
            quarter_round(x, j, 4 + (j + 1) % 4, 8 + (j + 2) % 4, 12 + (j + 3) % 4);
    }
    for (int i = 0; i < WORDS; i++)
        x[i] += c->input[i];
    c->used = 0;
    c->input[13] += ++c->input[12] == 0;
}

void tern_chacha_start(tern_chacha *c, const uint8_t key[32], const uint8_t nonce[8]) {
    static const uint8_t constants[] = "expand 32-byte k";
    for (int i = 0; i < 4; i++)
        c->input[i] = load_le(constants + 4 * i);
    for (int i = 0; i < 8; i++)
        c->input[4 + i] = load_le(key + 4 * i);
    c->input[12] = 0;
    c->input[13] = 0;
    c->input[14] = load_le(nonce);
    c->input[15] = load_le(nonce + 4);
    c->used = WORDS;
}

void tern_chacha_seed(tern_chacha *c, uint64_t seed) {
    static const uint8_t no_nonce[8];
    uint8_t key[32];
    for (int i = 0; i < 32; i++)
        key[i] = (uint8_t)(seed >> (8 * (i % 8)));
    tern_chacha_start(c, key, no_nonce);
}

uint32_t tern_chacha_next(tern_chacha *c) {
    if (c->used == WORDS)
        next_block(c);
    return c->output[c->used++];
}

double tern_chacha_uniform(tern_chacha *c) {
    const uint64_t low = tern_chacha_next(c);
    const uint64_t high = tern_chacha_next(c);
    return (double)((high << 32 | low) >> 11) * 0x1p-53;
}
