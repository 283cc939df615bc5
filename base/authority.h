/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_AUTHORITY_H
#define TERN_BASE_AUTHORITY_H

/*
 * The parties that HOST[:PORT] and SCHEME://HOST[:PORT] mean, to compare whole: a text that only
 * begins like a host's name is another host's. Nothing is guessed: a text of another form, with a
 * user's name, a blank, a byte above 127 or an escape, names nobody, and nobody is equal to nobody.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TERN_AUTHORITY_BYTES = 255, TERN_NO_PORT = UINT16_MAX + 1 };

typedef struct tern_authority {
    const char *host; /* [size] of the text; an IPv6 address stands in its brackets */
    size_t size;
    uint32_t port; /* TERN_NO_PORT: none is said */
} tern_authority;

/*
 * True if text[size] is HOST or HOST:PORT and nothing else: a name of letters, digits, '-', '.' and
 * '_', an IPv4 address, or an IPv6 address in brackets, with a port in decimal digits; together at
 * most TERN_AUTHORITY_BYTES.
 */
bool tern_authority_read(const char *text, size_t size, tern_authority *out);

/* True if both are the same host. Case, and one dot at the end of a name, make no difference. */
bool tern_authority_same_host(const tern_authority *a, const tern_authority *b);

/* True if a host is this machine and no other: localhost, a name below it, 127.0.0.0/8, ::1. */
bool tern_authority_is_loopback(const tern_authority *a);

typedef struct tern_origin {
    bool secure; /* https, not http */
    tern_authority at;
    size_t size; /* bytes that were read: the rest is empty, or begins with '/', '?' or '#' */
} tern_origin;

/* The origin at the beginning of a URL. The port is the scheme's where none is said. */
bool tern_origin_read(const char *url, tern_origin *out);

/* True if a Host line names an origin's host and its port. A line may leave the port away where it
 * is the scheme's. */
bool tern_origin_is_of(const tern_origin *origin, const char *host);

/* True if two URLs have the same scheme, host and port; false if one has no sound origin. */
bool tern_origin_is_same(const char *a, const char *b);

#endif
