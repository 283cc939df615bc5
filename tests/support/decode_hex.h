/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_SUPPORT_DECODE_HEX_H
#define TERN_TESTS_SUPPORT_DECODE_HEX_H

#include <stddef.h>

#include "base/hex.h"

/* Decodes hexadecimal digits in place. Returns the number of bytes. */
static inline size_t decode_hex(char *line) {
    size_t n = 0;
    for (; hex_digit(line[2 * n]) >= 0 && hex_digit(line[2 * n + 1]) >= 0; n++)
        line[n] = (char)(hex_digit(line[2 * n]) << 4 | hex_digit(line[2 * n + 1]));
    return n;
}

#endif
