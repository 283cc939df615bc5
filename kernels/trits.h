/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_TRITS_H
#define TERN_KERNELS_TRITS_H

/*
 * Five base-3 digits in a byte, so that a table of 64 entries gives each of them: layout T5BR16.
 *
 * A processor with a permutation of 64 bytes looks an entry up for six bits of each byte in one
 * instruction. So digits 0 and 1 are functions of bits 0 to 5, digits 2 and 3 of bits 2 to 7, digit
 * 4 of bits 0 to 3, 6 and 7: of all bytes that differ only in the two bits that are left out, the
 * digit is the same. Two digits that share their six bits have nine values. Each comes with the 27
 * values of the other digits, so it needs seven of the 64 groups of four bytes, and nine values
 * need 63. (Three digits would need 27 values of three groups, 81; so there must be three such
 * sets of bits.) Which groups mean which value was found by annealing. 13 of the 256 bytes repeat
 * what others mean. Byte 0 is five codes 1, weights 0.
 */

#include <stdint.h>

enum { TERN_TRITS = 5, TERN_TRITS_STATES = 243 };

/* The six bits of a byte by which digit n is looked up. */
static inline unsigned tern_trits_index(unsigned byte, int n) {
    if (n < 2)
        return byte & 63;
    return n < 4 ? byte >> 2 : (byte & 15) | (byte >> 2 & 48);
}

/* Digit n by these six bits. */
static inline const uint8_t *tern_trits_table(int n) {
    static const _Alignas(64) uint8_t digits[TERN_TRITS][64] = {
        {1, 0, 1, 2, 1, 1, 1, 0, 0, 2, 1, 1, 1, 2, 1, 0, 1, 1, 0, 1, 2, 0,
         0, 0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 1, 2, 0, 1, 0, 2, 0, 1, 1, 2,
         0, 2, 2, 0, 2, 0, 2, 0, 2, 2, 1, 1, 1, 2, 0, 2, 1, 2, 1, 1},
        {1, 1, 2, 0, 0, 2, 2, 0, 0, 1, 1, 2, 0, 0, 1, 1, 2, 1, 0, 0, 1, 0,
         1, 2, 1, 2, 2, 0, 1, 2, 2, 0, 1, 2, 1, 2, 2, 0, 1, 0, 1, 0, 1, 0,
         1, 0, 2, 2, 0, 1, 1, 0, 0, 2, 0, 2, 1, 2, 2, 1, 2, 2, 1, 0},
        {1, 2, 2, 1, 2, 0, 1, 1, 0, 2, 0, 0, 2, 2, 2, 1, 1, 1, 2, 2, 1, 2,
         0, 1, 2, 1, 0, 2, 0, 0, 1, 1, 0, 0, 0, 0, 0, 2, 1, 1, 1, 1, 2, 2,
         1, 2, 0, 2, 1, 0, 0, 1, 1, 2, 1, 0, 2, 0, 1, 0, 2, 2, 0, 0},
        {1, 1, 2, 1, 2, 0, 2, 1, 1, 2, 1, 2, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1,
         2, 0, 2, 2, 0, 0, 1, 0, 1, 2, 0, 1, 2, 2, 0, 0, 0, 0, 2, 1, 0, 2,
         2, 2, 0, 0, 2, 1, 2, 0, 2, 0, 1, 0, 1, 2, 0, 1, 2, 0, 1, 2},
        {1, 0, 2, 1, 0, 0, 1, 2, 0, 2, 1, 2, 1, 2, 0, 1, 0, 1, 2, 2, 1, 0,
         1, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0, 1, 0, 1, 0, 2, 0, 1, 1, 0, 1,
         0, 0, 1, 2, 0, 2, 1, 1, 0, 1, 0, 1, 0, 0, 1, 0, 2, 1, 2, 2}};
    return digits[n];
}

static inline unsigned tern_trits_digit(unsigned byte, int n) {
    return tern_trits_table(n)[tern_trits_index(byte, n)];
}

#endif
