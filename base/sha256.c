/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <stdio.h>
#include <string.h>

/* First 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS
 * 180-4, 4.2.2). */
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, unsigned n) {
    return x >> n | x << (32 - n);
}

/* The message schedule (FIPS 180-4, 6.2.2 step 1). */
static void expand(const uint8_t *block, uint32_t w[64]) {
    for (int i = 0; i < 16; i++) {
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | (uint32_t)block[4 * i + 3];
    }
    for (int i = 16; i < 64; i++) {
        const uint32_t a = w[i - 15];
        const uint32_t b = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
}

/* The working variables have names, not places in an array that is moved along: the compiler keeps
 * them in registers. */
static void compress(uint32_t state[8], const uint8_t *block) {
    uint32_t w[64];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    expand(block, w);
    for (int i = 0; i < 64; i++) {
        const uint32_t choice = (e & f) ^ (~e & g);
        const uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
        const uint32_t t1 =
            h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + choice + round_constants[i] + w[i];
        const uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + majority;
        h = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + t2;
    }
    const uint32_t sums[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++)
        state[i] += sums[i];
}

void tern_sha256_start(tern_sha256 *h) {
    /* Fractional parts of the square roots of the first eight primes (FIPS 180-4, 5.3.3). */
    *h = (tern_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void tern_sha256_add(tern_sha256 *h, const void *bytes, size_t size) {
    const uint8_t *next = bytes;
    while (size > 0) {
        const size_t at = (size_t)(h->bytes % sizeof h->block);
        const size_t room = sizeof h->block - at;
        const size_t n = size < room ? size : room;
        memcpy(h->block + at, next, n);
        h->bytes += n;
        next += n;
        size -= n;
        if (n == room)
            compress(h->state, h->block);
    }
}

void tern_sha256_finish(tern_sha256 *h, char hex[65]) {
    static const uint8_t padding[64] = {0x80};
    const uint64_t bits = 8 * h->bytes;
    const size_t at = (size_t)(h->bytes % sizeof h->block);
    tern_sha256_add(h, padding, at < 56 ? 56 - at : 120 - at);
    uint8_t length[8];
    for (unsigned i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    tern_sha256_add(h, length, sizeof length);
    for (int i = 0; i < 8; i++)
        (void)snprintf(hex + (size_t)i * 8, 9, "%08x", h->state[i]);
}
