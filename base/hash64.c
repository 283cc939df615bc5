/* SPDX-License-Identifier: Apache-2.0 */
/* After the description of the XXH64 algorithm in xxHash's specification. */

#include "base/hash64.h"

#include <string.h>

/* The five primes of the specification. */
static const uint64_t P1 = UINT64_C(0x9e3779b185ebca87);
static const uint64_t P2 = UINT64_C(0xc2b2ae3d27d4eb4f);
static const uint64_t P3 = UINT64_C(0x165667b19e3779f9);
static const uint64_t P4 = UINT64_C(0x85ebca77c2b2ae63);
static const uint64_t P5 = UINT64_C(0x27d4eb2f165667c5);

static uint64_t rotate(uint64_t x, unsigned bits) {
    return x << bits | x >> (64 - bits);
}

static uint64_t load(const uint8_t *p) {
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static uint64_t mix(uint64_t lane, uint64_t x) {
    return rotate(lane + x * P2, 31) * P1;
}

void tern_hash64_start(tern_hash64 *h) {
    *h = (tern_hash64){.lanes = {P1 + P2, P2, 0, 0 - P1}};
}

/* Takes whole stripes; returns how many bytes. */
static size_t take_stripes(tern_hash64 *h, const uint8_t *p, size_t n) {
    uint64_t a = h->lanes[0], b = h->lanes[1], c = h->lanes[2], d = h->lanes[3];
    const size_t whole = n / TERN_HASH64_STRIPE * TERN_HASH64_STRIPE;
    for (size_t i = 0; i < whole; i += TERN_HASH64_STRIPE) {
        a = mix(a, load(p + i));
        b = mix(b, load(p + i + 8));
        c = mix(c, load(p + i + 16));
        d = mix(d, load(p + i + 24));
    }
    h->lanes[0] = a, h->lanes[1] = b, h->lanes[2] = c, h->lanes[3] = d;
    return whole;
}

void tern_hash64_add(tern_hash64 *h, const void *bytes, size_t n) {
    const uint8_t *p = bytes;
    const size_t waiting = (size_t)(h->total % TERN_HASH64_STRIPE);
    if (n == 0)
        return;
    h->total += n;
    if (waiting > 0) {
        const size_t room = TERN_HASH64_STRIPE - waiting;
        const size_t moved = n < room ? n : room;
        memcpy(h->rest + waiting, p, moved);
        p += moved;
        n -= moved;
        if (moved < room)
            return;
        (void)take_stripes(h, h->rest, TERN_HASH64_STRIPE);
    }
    const size_t taken = take_stripes(h, p, n);
    memcpy(h->rest, p + taken, n - taken);
}

static uint64_t join_lanes(const tern_hash64 *h) {
    const uint64_t *v = h->lanes;
    uint64_t x = rotate(v[0], 1) + rotate(v[1], 7) + rotate(v[2], 12) + rotate(v[3], 18);
    for (int i = 0; i < 4; i++)
        x = (x ^ mix(0, v[i])) * P1 + P4;
    return x;
}

uint64_t tern_hash64_value(const tern_hash64 *h) {
    uint64_t x = (h->total < TERN_HASH64_STRIPE ? P5 : join_lanes(h)) + h->total;
    const uint8_t *p = h->rest;
    size_t left = (size_t)(h->total % TERN_HASH64_STRIPE);
    for (; left >= 8; left -= 8, p += 8)
        x = rotate(x ^ mix(0, load(p)), 27) * P1 + P4;
    if (left >= 4) {
        uint32_t half;
        memcpy(&half, p, sizeof half);
        x = rotate(x ^ half * P1, 23) * P2 + P3;
        left -= 4;
        p += 4;
    }
    for (; left > 0; left--, p++)
        x = rotate(x ^ *p * P5, 11) * P1;
    x = (x ^ x >> 33) * P2;
    x = (x ^ x >> 29) * P3;
    return x ^ x >> 32;
}

uint64_t tern_hash64_of(const void *bytes, size_t n) {
    tern_hash64 h;
    tern_hash64_start(&h);
    tern_hash64_add(&h, bytes, n);
    return tern_hash64_value(&h);
}
