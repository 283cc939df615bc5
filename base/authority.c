/* SPDX-License-Identifier: Apache-2.0 */
#include "base/authority.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define DIGITS "0123456789"
#define HEXADECIMAL DIGITS "abcdefABCDEF"

enum { MOST_PORT_DIGITS = 5 };

static bool is_name_byte(char c) {
    return isalnum((unsigned char)c) || (c != '\0' && strchr("-._", c) != NULL);
}

/* Bytes of the name or address at the beginning; 0: there is none. */
static size_t host_bytes(const char *text, size_t size) {
    size_t n = 0;
    if (size == 0 || text[0] != '[') {
        while (n < size && is_name_byte(text[n]))
            n++;
        return n;
    }
    for (n = 1; n < size && text[n] != '\0' && strchr(HEXADECIMAL ":.", text[n]) != NULL;)
        n++;
    return n >= 3 && n < size && text[n] == ']' ? n + 1 : 0;
}

static bool read_port(const char *digits, size_t size, uint32_t *port) {
    uint32_t value = 0;
    if (size == 0 || size > MOST_PORT_DIGITS)
        return false;
    for (size_t i = 0; i < size; i++) {
        if (digits[i] < '0' || digits[i] > '9')
            return false;
        value = 10 * value + (uint32_t)(digits[i] - '0');
    }
    *port = value;
    return value <= UINT16_MAX;
}

bool tern_authority_read(const char *text, size_t size, tern_authority *out) {
    if (size > TERN_AUTHORITY_BYTES)
        return false;
    const size_t n = host_bytes(text, size);
    *out = (tern_authority){.host = text, .size = n, .port = TERN_NO_PORT};
    return n > 0 &&
           (n == size || (text[n] == ':' && read_port(text + n + 1, size - n - 1, &out->port)));
}

/* Without the dot that may end a name that is whole. */
static size_t bare(const tern_authority *a) {
    return a->size - (a->size > 1 && a->host[a->size - 1] == '.');
}

bool tern_authority_same_host(const tern_authority *a, const tern_authority *b) {
    const size_t n = bare(a);
    return n > 0 && n == bare(b) && strncasecmp(a->host, b->host, n) == 0;
}

/* True for 127.x.y.z: four numbers below 256, of at most three digits each. */
static bool is_loopback_v4(const char *host, size_t size) {
    size_t at = 0;
    for (unsigned part = 0; part < 4; part++) {
        uint32_t value = 0;
        size_t digits = 0;
        for (; at < size && digits < 3 && host[at] >= '0' && host[at] <= '9'; at++, digits++)
            value = 10 * value + (uint32_t)(host[at] - '0');
        const bool ends = at == size, dot = !ends && host[at] == '.';
        if (digits == 0 || value > 255 || (part == 0 && value != 127) || (part < 3 ? !dot : !ends))
            return false;
        at += part < 3;
    }
    return true;
}

bool tern_authority_is_loopback(const tern_authority *a) {
    static const char local[] = "localhost";
    const size_t n = bare(a), word = sizeof local - 1;
    if (n >= word && strncasecmp(a->host + n - word, local, word) == 0)
        return n == word || (n > word + 1 && a->host[n - word - 1] == '.');
    return (n == 5 && memcmp(a->host, "[::1]", 5) == 0) || is_loopback_v4(a->host, n);
}

static uint32_t usual_port(bool secure) {
    return secure ? 443 : 80;
}

bool tern_origin_read(const char *url, tern_origin *out) {
    const bool secure = strncasecmp(url, "https://", 8) == 0;
    if (!secure && strncasecmp(url, "http://", 7) != 0)
        return false;
    const char *at = url + (secure ? 8 : 7);
    const size_t size = strcspn(at, "/?#");
    *out = (tern_origin){.secure = secure, .size = (size_t)(at - url) + size};
    if (!tern_authority_read(at, size, &out->at))
        return false;
    if (out->at.port == TERN_NO_PORT)
        out->at.port = usual_port(secure);
    return true;
}

bool tern_origin_is_of(const tern_origin *origin, const char *host) {
    tern_authority named;
    if (!tern_authority_read(host, strlen(host), &named))
        return false;
    if (named.port == TERN_NO_PORT)
        named.port = usual_port(origin->secure);
    return named.port == origin->at.port && tern_authority_same_host(&named, &origin->at);
}

bool tern_origin_is_same(const char *a, const char *b) {
    tern_origin x, y;
    return tern_origin_read(a, &x) && tern_origin_read(b, &y) && x.secure == y.secure &&
           x.at.port == y.at.port && tern_authority_same_host(&x.at, &y.at);
}
