/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_SHA256_H
#define TERN_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

/* SHA-256 (FIPS 180-4) of bytes that come in pieces. */
typedef struct tern_sha256 {
    uint32_t state[8];
    uint64_t bytes;    /* so far */
    uint8_t block[64]; /* the last bytes % 64 of them */
} tern_sha256;

void tern_sha256_start(tern_sha256 *h);
void tern_sha256_add(tern_sha256 *h, const void *bytes, size_t size);

/* The digest as 64 lower-case hexadecimal digits. h is spent. */
void tern_sha256_finish(tern_sha256 *h, char hex[65]);

#endif
