/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_CHACHA_H
#define TERN_BASE_CHACHA_H

#include <stdint.h>

/*
 * ChaCha with 8 rounds (four double rounds) and a 256-bit key, in the original form of D. J.
 * Bernstein's "ChaCha, a variant of Salsa20" (2008): a 64-bit block counter from 0 and a 64-bit
 * nonce. Here it is a source of random numbers, not of secrecy.
 */
typedef struct tern_chacha {
    uint32_t input[16];  /* constants, key, counter, nonce */
    uint32_t output[16]; /* keystream block before `counter` */
    uint32_t used;       /* words of output that were handed out */
} tern_chacha;

/* Starts the keystream of a key (32 bytes) and nonce (8 bytes). */
void tern_chacha_start(tern_chacha *c, const uint8_t key[32], const uint8_t nonce[8]);

/* Starts the stream of a seed: the key is the seed's 8 little-endian bytes four times, the nonce 0.
 */
void tern_chacha_seed(tern_chacha *c, uint64_t seed);

/* The next 32 bits: the keystream read as little-endian words. */
uint32_t tern_chacha_next(tern_chacha *c);

/* A number in [0, 1) with 53 random bits: two words, the first one low, shifted right by 11. */
double tern_chacha_uniform(tern_chacha *c);

#endif
