/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the head of a request or, after a first byte of '#', as a body in chunks. Read in
 * pieces, whose sizes depend on the bytes, they must give the same result as at once. A second
 * reader, made of patterns of lines, must find an accepted head sound and its fields the same; it
 * must find a refused head wrong. An accepted body is read again and must be the same.
 */
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "serve/http/chunks.h"
#include "serve/http/head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition)
        abort();
}

/* ---- heads ----------------------------------------------------------------------------------- */

#define TOKEN "[!#$%&'*+.^_`|~0-9A-Za-z-]+"

static bool matches(const char *line, const char *pattern) {
    regex_t compiled;
    require(regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB) == 0);
    const bool found = regexec(&compiled, line, 0, NULL, 0) == 0;
    regfree(&compiled);
    return found;
}

/* The first line, without regard to the meaning of its version and target. */
static bool is_first_line(const char *line) {
    return matches(line, "^" TOKEN " [!-~]+ HTTP/[0-9]\\.[0-9]$");
}

static bool is_field(const char *line) {
    const char *colon = strchr(line, ':');
    char name[4096];
    if (colon == NULL || (size_t)(colon - line) >= sizeof name)
        return false;
    memcpy(name, line, (size_t)(colon - line));
    name[colon - line] = '\0';
    for (const char *c = colon + 1; *c != '\0'; c++)
        if (((unsigned char)*c < ' ' && *c != '\t') || *c == 127)
            return false;
    return matches(name, "^" TOKEN "$");
}

/* True if all lines of a head have the right form, and the last one is empty. */
static bool lines_are_sound(const char *bytes, size_t size) {
    if (size < 4 || memchr(bytes, '\0', size) != NULL)
        return false;
    char *copy = calloc(size + 1, 1);
    require(copy != NULL);
    memcpy(copy, bytes, size);
    char *at = copy + (strncmp(copy, "\r\n", 2) == 0 ? 2 : 0);
    bool sound = true, first = true, ended = false;
    while (sound && !ended && *at != '\0') {
        char *end = strstr(at, "\r\n");
        sound = end != NULL;
        if (!sound)
            break;
        *end = '\0';
        ended = *at == '\0' && !first;
        sound =
            ended || (strpbrk(at, "\r\n") == NULL && (first ? is_first_line(at) : is_field(at)));
        first = false;
        at = end + 2;
    }
    sound = sound && ended && *at == '\0';
    free(copy);
    return sound;
}

static void check_fields(const http_head *h) {
    const char *at = NULL, *name, *value;
    while (http_head_next(h, &at, &name, &value)) {
        const size_t n = strlen(value);
        require(http_is_token(name) && http_head_find(h, name) != NULL);
        require(n == 0 || (strchr(" \t", value[0]) == NULL && strchr(" \t", value[n - 1]) == NULL));
        require(strpbrk(value, "\r\n") == NULL);
    }
}

static void check_head(const char *bytes, size_t size, size_t piece) {
    http_scan whole = {0}, pieces = {0};
    const http_head_verdict verdict = http_head_scan(&whole, bytes, size);
    http_head_verdict again = HTTP_HEAD_MORE;
    for (size_t n = 0; n < size && again == HTTP_HEAD_MORE;) {
        n = n + piece < size ? n + piece : size;
        again = http_head_scan(&pieces, bytes, n);
    }
    require(again == verdict && pieces.at == whole.at && whole.at <= size);
    if (verdict != HTTP_HEAD_WHOLE)
        return;
    char *copy = malloc(whole.at);
    http_head h;
    require(copy != NULL);
    memcpy(copy, bytes, whole.at);
    const http_head_verdict read = http_head_read(copy, whole.at, &h);
    const bool sound = lines_are_sound(bytes, whole.at);
    require(read != HTTP_HEAD_MORE && (read != HTTP_HEAD_WHOLE || sound));
    if (read == HTTP_HEAD_WHOLE)
        check_fields(&h);
    else if (read == HTTP_HEAD_WRONG && sound) /* only its target may be wrong */
        require(h.target != NULL && (h.target[0] != '/' || strchr(h.target, '#') != NULL));
    free(copy);
}

/* ---- chunks ---------------------------------------------------------------------------------- */

typedef struct body {
    http_chunks c;
    size_t taken, size;
    uint64_t sum; /* of its bytes, in order */
} body;

static body take(const char *bytes, size_t size, size_t piece) {
    body b = {0};
    while (b.taken < size && b.c.state != HTTP_CHUNKS_DONE && b.c.state != HTTP_CHUNKS_WRONG) {
        const size_t more = b.taken + piece < size ? piece : size - b.taken;
        const char *part;
        size_t n;
        const size_t used = http_chunks_take(&b.c, bytes + b.taken, more, &part, &n);
        require(used > 0 && used <= more && n <= used);
        for (size_t i = 0; i < n; i++)
            b.sum = b.sum * 31 + (unsigned char)part[i];
        b.size += n;
        b.taken += used;
    }
    return b;
}

/* Reads an accepted body again, with the C library's reader for the sizes. */
static body read_again(const char *bytes, size_t size) {
    body b = {0};
    for (;;) {
        const char *line = bytes + b.taken, *end = memmem(line, size - b.taken, "\r\n", 2);
        require(end != NULL);
        const uint64_t n = strtoull(line, NULL, 16);
        b.taken += (size_t)(end - line) + 2;
        if (n == 0)
            break;
        require(n + 2 <= size - b.taken);
        for (size_t i = 0; i < n; i++)
            b.sum = b.sum * 31 + (unsigned char)bytes[b.taken + i];
        b.size += n;
        b.taken += n + 2;
    }
    for (bool last = false; !last;) {
        const char *end = memmem(bytes + b.taken, size - b.taken, "\r\n", 2);
        require(end != NULL);
        last = end == bytes + b.taken;
        b.taken = (size_t)(end - bytes) + 2;
    }
    return b;
}

static void check_chunks(const char *bytes, size_t size, size_t piece) {
    const body whole = take(bytes, size, size), pieces = take(bytes, size, piece);
    require(whole.c.state == pieces.c.state && whole.taken == pieces.taken &&
            whole.size == pieces.size && whole.sum == pieces.sum);
    if (whole.c.state != HTTP_CHUNKS_DONE)
        return;
    const body again = read_again(bytes, whole.taken);
    require(again.taken == whole.taken && again.size == whole.size && again.sum == whole.sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    const char *bytes = (const char *)data;
    const size_t piece = 1 + bytes[size - 1] % 7U;
    if (bytes[0] == '#')
        check_chunks(bytes + 1, size - 1, piece);
    else
        check_head(bytes, size, piece);
    return 0;
}
