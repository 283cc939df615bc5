/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/head.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/authority.h"

bool http_is_token_byte(unsigned char c) {
    static const char marks[] = "!#$%&'*+-.^_`|~";
    return c < 128 && (isalnum(c) || (c != '\0' && strchr(marks, c) != NULL));
}

bool http_is_token(const char *text) {
    const char *c = text;
    while (http_is_token_byte((unsigned char)*c))
        c++;
    return c > text && *c == '\0';
}

bool http_is_value_byte(unsigned char c) {
    return c == '\t' || (c >= ' ' && c != 127);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static bool fits(const http_scan *s, unsigned char c) {
    if (s->after_return)
        return c == '\n';
    if (c == '\r')
        return true;
    if (s->lines == 0)
        return c >= ' ' && c < 127;
    return http_is_value_byte(c);
}

/* Handles the line feed that ends a line. One empty line before the first is skipped. */
static http_head_verdict end_line(http_scan *s) {
    const bool empty = s->at == s->line + 2;
    s->line = s->at;
    if (!empty) {
        s->lines++;
        return HTTP_HEAD_MORE;
    }
    if (s->lines > 0)
        return HTTP_HEAD_WHOLE;
    const bool again = s->skipped;
    s->skipped = true;
    return again ? HTTP_HEAD_WRONG : HTTP_HEAD_MORE;
}

http_head_verdict http_head_scan(http_scan *s, const char *bytes, size_t size) {
    http_head_verdict verdict = HTTP_HEAD_MORE;
    while (s->at < size && verdict == HTTP_HEAD_MORE) {
        const unsigned char c = (unsigned char)bytes[s->at];
        if (!fits(s, c))
            return HTTP_HEAD_WRONG;
        s->at++;
        s->after_return = c == '\r';
        if (c == '\n')
            verdict = end_line(s);
    }
    return verdict;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Ends the text at the first such byte and returns what follows; NULL: the byte is not there. */
static char *cut_at(char *text, char byte) {
    char *end = strchr(text, byte);
    if (end == NULL)
        return NULL;
    *end = '\0';
    return end + 1;
}

static bool is_target(const http_head *h) {
    tern_origin at;
    if (strchr(h->target, '#') != NULL)
        return false; /* fragments are never sent to servers */
    if (h->target[0] == '/')
        return true;
    if (strcmp(h->target, "*") == 0)
        return strcmp(h->method, "OPTIONS") == 0;
    return tern_origin_read(h->target, &at);
}

static http_head_verdict read_version(const char *word, http_head *out) {
    static const char name[] = "HTTP/";
    const char *digits = word + sizeof name - 1;
    if (strncmp(word, name, sizeof name - 1) != 0 || !isdigit((unsigned char)digits[0]) ||
        digits[1] != '.' || !isdigit((unsigned char)digits[2]) || digits[3] != '\0')
        return HTTP_HEAD_WRONG;
    out->old = strcmp(digits, "1.0") == 0;
    return out->old || strcmp(digits, "1.1") == 0 ? HTTP_HEAD_WHOLE : HTTP_HEAD_VERSION;
}

static http_head_verdict read_first_line(char *line, http_head *out) {
    char *target = cut_at(line, ' ');
    char *version = target != NULL ? cut_at(target, ' ') : NULL;
    if (version == NULL || !http_is_token(line))
        return HTTP_HEAD_WRONG;
    out->method = line;
    out->target = target;
    const http_head_verdict verdict = read_version(version, out);
    return verdict != HTTP_HEAD_WHOLE || is_target(out) ? verdict : HTTP_HEAD_WRONG;
}

static char *skip_blanks(char *text) {
    return text + strspn(text, " \t");
}

static void trim_end(char *text) {
    size_t n = strlen(text);
    while (n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\t'))
        n--;
    text[n] = '\0';
}

/* Moves a text and its terminator to *to, and *to behind them. */
static void put(char **to, const char *word) {
    const size_t n = strlen(word) + 1;
    memmove(*to, word, n);
    *to += n;
}

/* Returns the line at *at, terminated in place of its CR, and moves *at to the next one. */
static char *take_line(char **at) {
    char *line = *at;
    char *end = strchr(line, '\r');
    *end = '\0';
    *at = end + 2;
    return line;
}

http_head_verdict http_head_read(char *bytes, size_t size, http_head *out) {
    char *at = bytes + (size > 2 && bytes[0] == '\r' ? 2 : 0);
    const char *const end = bytes + size - 2; /* end of the last field: the empty line begins
                                                 there */
    *out = (http_head){0};
    const http_head_verdict verdict = read_first_line(take_line(&at), out);
    if (verdict != HTTP_HEAD_WHOLE)
        return verdict;
    char *to = at;
    out->fields = to;
    while (at < end) {
        char *name = take_line(&at);
        char *value = cut_at(name, ':');
        if (value == NULL || !http_is_token(name))
            return HTTP_HEAD_WRONG;
        value = skip_blanks(value);
        trim_end(value);
        put(&to, name);
        put(&to, value);
    }
    out->fields_size = (size_t)(to - out->fields);
    return HTTP_HEAD_WHOLE;
}

bool http_head_next(const http_head *h, const char **at, const char **name, const char **value) {
    if (*at == NULL)
        *at = h->fields;
    if (h->fields_size == 0 || *at == h->fields + h->fields_size)
        return false;
    *name = *at;
    *value = *name + strlen(*name) + 1;
    *at = *value + strlen(*value) + 1;
    return true;
}

const char *http_head_find(const http_head *h, const char *wanted) {
    const char *at = NULL, *name, *value;
    while (http_head_next(h, &at, &name, &value))
        if (strcasecmp(name, wanted) == 0)
            return value;
    return NULL;
}
