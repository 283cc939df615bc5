/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_HEX_H
#define TERN_BASE_HEX_H

/* The value of a hexadecimal digit in either case; -1: c is none. */
static inline int hex_digit(int c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    const int letter = c | 0x20;
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

#endif
