/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/in_file.h"
#include "base/sha256.h"

enum { MOST_FILE_BYTES = 1 << 20 };

static uint8_t nibble(char digit) {
    return (uint8_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

static void digest_of(const char *bytes, size_t size, uint8_t digest[KEY_DIGEST_BYTES]) {
    tern_sha256 h;
    char hex[65];
    tern_sha256_start(&h);
    tern_sha256_add(&h, bytes, size);
    tern_sha256_finish(&h, hex);
    for (size_t i = 0; i < KEY_DIGEST_BYTES; i++)
        digest[i] = (uint8_t)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
}

static key *new_key(const char *label, size_t label_size, const char *bytes, size_t size) {
    key *k = calloc(1, sizeof *k);
    if (k == NULL || pthread_mutex_init(&k->lock, NULL) != 0) {
        free(k);
        return NULL;
    }
    atomic_init(&k->owners, 1);
    (void)snprintf(k->label, sizeof k->label, "%.*s", (int)label_size, label);
    digest_of(bytes, size, k->digest);
    return k;
}

/* Adds a key under its label, or under "key" and its number if it has none. */
static tern_status add(keys *k, const char *label, size_t label_size, const char *bytes,
                       size_t size, tern_error *err) {
    char number[KEY_LABEL_BYTES];
    if (label_size == 0) {
        label_size = (size_t)snprintf(number, sizeof number, "key%zu", k->n + 1);
        label = number;
    }
    key *added = NULL;
    if (tern_grow((void **)&k->at, &k->capacity, k->n, sizeof(key *), SIZE_MAX / sizeof(key *)))
        added = new_key(label, label_size, bytes, size);
    if (added == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu keys", k->n + 1);
    k->at[k->n++] = added;
    return TERN_OK;
}

static bool equal(const uint8_t *a, const uint8_t *b) {
    volatile uint8_t differs = 0;
    for (size_t i = 0; i < KEY_DIGEST_BYTES; i++)
        differs = (uint8_t)(differs | (a[i] ^ b[i]));
    return differs == 0;
}

static key *find(const keys *k, const uint8_t *digest) {
    key *found = NULL;
    for (size_t i = 0; i < k->n; i++)
        found = equal(digest, k->at[i]->digest) ? k->at[i] : found;
    return found;
}

/* True if the key is not there yet. A key given twice would have two labels and limits, of which
 * one would be ignored. */
static bool is_new(const keys *k, const char *bytes, size_t size) {
    uint8_t digest[KEY_DIGEST_BYTES];
    digest_of(bytes, size, digest);
    return find(k, digest) == NULL;
}

tern_status keys_add_list(keys *k, const char *list, tern_error *err) {
    tern_status status = TERN_OK;
    size_t number = 1;
    for (const char *at = list; at != NULL && status == TERN_OK; number++) {
        const size_t size = strcspn(at, ",");
        if (size == 0)
            return tern_fail(err, TERN_ERR_ARG, "an empty text is not a key");
        status = is_new(k, at, size)
                     ? add(k, "", 0, at, size, err)
                     : tern_fail(err, TERN_ERR_ARG, "key number %zu was given before", number);
        at = at[size] == ',' ? at + size + 1 : NULL;
    }
    return status;
}

/* ---- lines of a file ------------------------------------------------------------------------- */

enum { MOST_WORDS = 4 /* in a line: label, key, two limits */, MOST_LINE_BYTES = 4096 };

typedef struct line_words {
    const char *at[MOST_WORDS];
    size_t sizes[MOST_WORDS], n;
    bool more; /* there are more than MOST_WORDS */
} line_words;

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

static line_words split(const char *line, size_t size) {
    line_words w = {0};
    for (size_t i = 0; i < size && !w.more;) {
        const size_t begin = i;
        while (i < size && !is_blank(line[i]))
            i++;
        w.more = i > begin && w.n == MOST_WORDS;
        if (i > begin && !w.more) {
            w.at[w.n] = line + begin;
            w.sizes[w.n++] = i - begin;
        }
        while (i < size && is_blank(line[i]))
            i++;
    }
    return w;
}

/* True if a word is a limit of that name. *value gets its number, or 0 if it is not a number above
 * 0. */
static bool read_limit(const char *word, size_t size, const char *name, uint32_t *value) {
    const size_t n = strlen(name);
    if (size <= n || strncmp(word, name, n) != 0)
        return false;
    const size_t digits = strspn(word + n, "0123456789");
    *value = digits == size - n && digits <= 9 ? (uint32_t)strtoul(word + n, NULL, 10) : 0;
    return true;
}

/* Takes the limits off the end of a line's words; false if one is invalid or given twice. */
static bool take_limits(line_words *w, key_limits *l) {
    bool sound = true;
    while (w->n > 1 && sound) {
        const char *word = w->at[w->n - 1];
        const size_t size = w->sizes[w->n - 1];
        uint32_t *const limit = word[0] == 'r' ? &l->requests : &l->tokens_per_minute;
        const uint32_t before = *limit;
        if (!read_limit(word, size, "requests=", limit) &&
            !read_limit(word, size, "tokens-per-minute=", limit))
            break;
        sound = *limit > 0 && before == 0;
        w->n--;
    }
    return sound;
}

/* Returns why a line is refused; NULL: it is not. The words never quote the line, because a part of
 * it may be a key. */
static const char *fault_of_bytes(const char *line, size_t size) {
    if (size > MOST_LINE_BYTES)
        return "has more than 4096 bytes";
    for (size_t i = 0; i < size; i++)
        if (((unsigned char)line[i] < ' ' && line[i] != '\t') || line[i] == '\x7f')
            return "has a control character";
    return NULL;
}

static bool is_limit(const char *word, size_t size) {
    uint32_t value;
    return read_limit(word, size, "requests=", &value) ||
           read_limit(word, size, "tokens-per-minute=", &value);
}

static const char *fault_of_words(const line_words *w) {
    if (w->n > 2)
        return "is not a key, or a label and a key";
    if (w->n == 2 && w->sizes[0] >= KEY_LABEL_BYTES)
        return "has a label of more than 31 bytes";
    for (size_t i = 1; i < w->n; i++)
        if (w->at[i][0] == '#')
            return "has a word that begins with '#': a remark has a line of its own";
    return is_limit(w->at[0], w->sizes[0]) || is_limit(w->at[w->n - 1], w->sizes[w->n - 1])
               ? "has limits where its key belongs"
               : NULL;
}

/* Adds the key of a line, without its end: [label] key [limits]. */
static tern_status add_line(keys *k, const char *path, size_t number, const char *line, size_t size,
                            tern_error *err) {
    line_words w = split(line, size);
    key_limits limits = {0};
    const char *fault = fault_of_bytes(line, size);
    if (fault == NULL && (w.n == 0 || w.at[0][0] == '#'))
        return TERN_OK;
    if (fault == NULL && (w.more || !take_limits(&w, &limits)))
        fault = "has limits other than requests=N and tokens-per-minute=N";
    if (fault == NULL)
        fault = fault_of_words(&w);
    const char *text = fault == NULL ? w.at[w.n - 1] : NULL;
    if (fault == NULL && !is_new(k, text, w.sizes[w.n - 1]))
        fault = "has a key that was given before";
    if (fault != NULL)
        return tern_fail(err, TERN_ERR_ARG, "%s: line %zu %s", path, number, fault);
    const tern_status status =
        add(k, w.at[0], w.n == 2 ? w.sizes[0] : 0, text, w.sizes[w.n - 1], err);
    if (status == TERN_OK) {
        k->at[k->n - 1]->limits = limits;
        k->at[k->n - 1]->tokens_left = limits.tokens_per_minute;
    }
    return status;
}

/* Returns the bytes of a line without its end, LF or CR LF; *whole includes the end. */
static size_t line_bytes(const char *bytes, size_t left, size_t *whole) {
    const char *end = memchr(bytes, '\n', left);
    const size_t size = end != NULL ? (size_t)(end - bytes) : left;
    *whole = size + (end != NULL);
    return size - (size > 0 && bytes[size - 1] == '\r');
}

/* Returns the size of a UTF-8 byte order mark, which some editors write first; 0: there is none. */
static size_t mark_bytes(const char *line, size_t size) {
    return size >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

tern_status keys_add_file(keys *k, const char *path, tern_error *err) {
    const size_t before = k->n;
    char *bytes = NULL;
    size_t size = 0, number = 0;
    tern_status status = tern_in_file_read(path, MOST_FILE_BYTES, &bytes, &size, err);
    size_t at = status == TERN_OK ? mark_bytes(bytes, size) : 0;
    for (size_t whole; status == TERN_OK && at < size; at += whole) {
        const size_t n = line_bytes(bytes + at, size - at, &whole);
        status = add_line(k, path, ++number, bytes + at, n, err);
    }
    if (status == TERN_OK && k->n == before)
        status = tern_fail(err, TERN_ERR_ARG, "%s: there is no key in it", path);
    tern_in_file_forget(bytes, size);
    return status;
}

void keys_free(keys *k) {
    for (size_t i = 0; i < k->n; i++)
        key_release(k->at[i]);
    free(k->at);
    *k = (keys){0};
}

key *keys_find(const keys *k, const char *given, size_t size) {
    uint8_t digest[KEY_DIGEST_BYTES];
    digest_of(given, size, digest);
    key *found = find(k, digest);
    if (found != NULL)
        key_keep(found);
    return found;
}

/* Gives a key its new label and limits. Tokens used under the old limit count against the new one.
 */
static void carry(key *k, const key *fresh) {
    (void)pthread_mutex_lock(&k->lock);
    memcpy(k->label, fresh->label, sizeof k->label);
    k->tokens_left += (double)fresh->limits.tokens_per_minute - (double)k->limits.tokens_per_minute;
    k->limits = fresh->limits;
    (void)pthread_mutex_unlock(&k->lock);
}

void keys_replace(keys *k, keys *fresh) {
    for (size_t i = 0; i < fresh->n; i++) {
        key *old = find(k, fresh->at[i]->digest);
        if (old != NULL) {
            carry(old, fresh->at[i]);
            key_keep(old);
            key_release(fresh->at[i]);
            fresh->at[i] = old;
        }
    }
    keys_free(k);
    *k = *fresh;
    *fresh = (keys){0};
}

/* ---- one key --------------------------------------------------------------------------------- */

void key_keep(key *k) {
    (void)atomic_fetch_add(&k->owners, 1);
}

void key_release(key *k) {
    if (k != NULL && atomic_fetch_sub(&k->owners, 1) == 1) {
        (void)pthread_mutex_destroy(&k->lock);
        free(k);
    }
}

void key_label(key *k, char label[KEY_LABEL_BYTES]) {
    (void)pthread_mutex_lock(&k->lock);
    memcpy(label, k->label, KEY_LABEL_BYTES);
    (void)pthread_mutex_unlock(&k->lock);
}

/* Adds the tokens that came back since the last count. Needs the lock. */
static void refill(key *k, double now) {
    const double most = k->limits.tokens_per_minute;
    k->tokens_left += (now - k->counted) * most / 60.0;
    k->tokens_left = k->tokens_left > most ? most : k->tokens_left;
    k->counted = now;
}

key_verdict key_enter(key *k, double now, uint32_t *limit, double *seconds) {
    key_verdict verdict = KEY_MAY;
    (void)pthread_mutex_lock(&k->lock);
    refill(k, now);
    if (k->limits.requests > 0 && k->running >= k->limits.requests) {
        verdict = KEY_REQUESTS;
        *limit = k->limits.requests;
        *seconds = 1.0;
    } else if (k->limits.tokens_per_minute > 0 && k->tokens_left < 1.0) {
        verdict = KEY_TOKENS;
        *limit = k->limits.tokens_per_minute;
        *seconds = (1.0 - k->tokens_left) * 60.0 / k->limits.tokens_per_minute;
    } else {
        k->running++;
    }
    (void)pthread_mutex_unlock(&k->lock);
    return verdict;
}

void key_leave(key *k) {
    (void)pthread_mutex_lock(&k->lock);
    k->running--;
    (void)pthread_mutex_unlock(&k->lock);
}

void key_spend(key *k, double now, uint64_t tokens) {
    (void)pthread_mutex_lock(&k->lock);
    refill(k, now);
    k->tokens_left -= (double)tokens;
    (void)pthread_mutex_unlock(&k->lock);
}
