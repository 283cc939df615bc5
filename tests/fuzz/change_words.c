/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/change_words.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { MOST_TAKEN = 12 }; /* in words */

typedef struct part {
    size_t from, to;
} part;

typedef struct change {
    uint64_t state;
    char *bytes;
    size_t size, most;
} change;

/* A number from 0 to n - 1. */
static size_t draw(change *c, size_t n) {
    c->state = c->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)(c->state >> 33) % n;
}

static int kind(char c) {
    return isalnum((unsigned char)c) || c == '_' ? 1 : isspace((unsigned char)c) ? 2 : 0;
}

/* The end of the word that begins at `at`. A word is letters and digits, white space, or one mark;
 * the two marks that begin or end a tag are one word. */
static size_t word_end(const char *text, size_t size, size_t at) {
    const int of = kind(text[at]);
    const char next = at + 1 < size ? text[at + 1] : '\0';
    if (of == 0)
        return at + 1 +
               ((text[at] == '{' && next != '\0' && strchr("{%#", next) != NULL) ||
                (next == '}' && strchr("}%#", text[at]) != NULL && text[at] != '\0'));
    while (at < size && kind(text[at]) == of)
        at++;
    return at;
}

/* The start of the word that holds byte `at`. */
static size_t word_start(const char *text, size_t at) {
    while (at > 0 && kind(text[at]) != 0 && kind(text[at - 1]) == kind(text[at]))
        at--;
    return at;
}

/* Some words, mostly few. In an empty text, none. */
static part some_words(change *c, const char *text, size_t size) {
    part p = {0, 0};
    if (size == 0)
        return p;
    p.from = p.to = word_start(text, draw(c, size));
    const size_t n = 1 + draw(c, 1 + draw(c, MOST_TAKEN));
    for (size_t i = 0; i < n && p.to < size; i++)
        p.to = word_end(text, size, p.to);
    return p;
}

/* Replaces a part by text[size]. Does nothing if there is no room. */
static void replace(change *c, part p, const char *text, size_t size) {
    const size_t rest = c->size - p.to;
    if (c->size - (p.to - p.from) + size > c->most)
        return;
    memmove(c->bytes + p.from + size, c->bytes + p.to, rest);
    memcpy(c->bytes + p.from, text, size);
    c->size = p.from + size + rest;
}

/* Replaces a part by words of `text`, which may be the changed text itself. */
static void take_from(change *c, part p, const char *text, size_t size) {
    char taken[512];
    const part q = some_words(c, text, size);
    const size_t n = q.to - q.from < sizeof taken ? q.to - q.from : 0;
    memcpy(taken, text + q.from, n);
    replace(c, p, taken, n);
}

static void change_once(change *c, const char *const *words, size_t n_words, const char *other,
                        size_t other_size) {
    part p = some_words(c, c->bytes, c->size);
    const char *word = words[draw(c, n_words)];
    const bool stays = draw(c, 2) == 0; /* inserts before the words instead of replacing them */
    if (stays)
        p.to = p.from;
    switch (draw(c, 6)) {
    case 0:
        replace(c, p, "", 0);
        break;
    case 1:
    case 2:
        replace(c, p, word, strlen(word));
        break;
    case 3:
        take_from(c, p, c->bytes, c->size);
        break;
    default:
        if (other_size > 0)
            take_from(c, p, other, other_size);
        else
            replace(c, p, word, strlen(word));
    }
}

size_t change_words(const char *const *words, size_t n_words, char *bytes, size_t size, size_t most,
                    const char *other, size_t other_size, unsigned seed) {
    change c = {.state = seed, .bytes = bytes, .size = size, .most = most};
    for (size_t n = 1 + draw(&c, 4); n > 0; n--)
        change_once(&c, words, n_words, other, other_size);
    return c.size;
}
