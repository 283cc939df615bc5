/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_BASE64_H
#define TERN_BASE_BASE64_H

/* Bytes as text of 64 characters (RFC 4648, section 4). */

#include <stddef.h>

/* The four characters of up to three bytes, 1 <= n <= 3; "=" stands where there is none. */
void tern_base64_quad(const unsigned char *bytes, size_t n, char out[4]);

#endif
