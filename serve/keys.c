/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    for (size_t i = 0; i < KEY_DIGEST_BYTES; i++) {
        digest[i] = (uint8_t)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
    }
}

static tern_status add(keys *k, const char *label, size_t label_size, const char *bytes,
                       size_t size, tern_error *err) {
    if (k->n == k->capacity) {
        const size_t capacity = 2 * k->capacity + 8;
        key *grown = realloc(k->at, capacity * sizeof *grown);
        if (grown == NULL) {
            return tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu keys", k->n + 1);
        }
        k->at = grown;
        k->capacity = capacity;
    }
    key *added = &k->at[k->n++];
    if (label_size > 0) {
        (void)snprintf(added->label, sizeof added->label, "%.*s", (int)label_size, label);
    } else {
        (void)snprintf(added->label, sizeof added->label, "key%zu", k->n);
    }
    digest_of(bytes, size, added->digest);
    return TERN_OK;
}

tern_status keys_add_list(keys *k, const char *list, tern_error *err) {
    tern_status status = TERN_OK;
    for (const char *at = list; at != NULL && status == TERN_OK;) {
        const size_t size = strcspn(at, ",");
        status = size > 0 ? add(k, "", 0, at, size, err)
                          : tern_fail(err, TERN_ERR_ARG, "an empty text is no key");
        at = at[size] == ',' ? at + size + 1 : NULL;
    }
    return status;
}

/* A line, without its end: [label] key. */
static tern_status add_line(keys *k, const char *path, size_t number, const char *line, size_t size,
                            tern_error *err) {
    const char *words[3];
    size_t sizes[3], n = 0;
    for (size_t i = 0; i < size && n < 3 && line[i] != '#';) {
        const size_t blanks = strspn(line + i, " \t\r");
        const size_t word = strcspn(line + i + blanks, " \t\r\n");
        i += blanks;
        if (i < size && word > 0 && line[i] != '#') {
            words[n] = line + i;
            sizes[n++] = word;
        }
        i += i < size && line[i] != '#' ? word : 0;
    }
    if (n == 0) {
        return TERN_OK;
    }
    if (n == 3 || (n == 2 && sizes[0] >= KEY_LABEL_BYTES)) {
        return tern_fail(err, TERN_ERR_ARG,
                         "%s: line %zu is not a key, or a label of at most %d bytes and a key",
                         path, number, KEY_LABEL_BYTES - 1);
    }
    return add(k, n == 2 ? words[0] : "", n == 2 ? sizes[0] : 0, words[n - 1], sizes[n - 1], err);
}

tern_status keys_add_file(keys *k, const char *path, tern_error *err) {
    FILE *in = fopen(path, "re");
    if (in == NULL) {
        return tern_fail(err, TERN_ERR_IO, "%s: cannot be opened", path);
    }
    const size_t before = k->n;
    char *line = NULL;
    size_t capacity = 0, number = 0, total = 0;
    tern_status status = TERN_OK;
    for (ssize_t n; status == TERN_OK && (n = getline(&line, &capacity, in)) >= 0;) {
        total += (size_t)n;
        number++;
        status = total > MOST_FILE_BYTES || memchr(line, '\0', (size_t)n) != NULL
                     ? tern_fail(err, TERN_ERR_ARG, "%s: is no list of keys", path)
                     : add_line(k, path, number, line, strcspn(line, "\n"), err);
    }
    if (status == TERN_OK && ferror(in)) {
        status = tern_fail(err, TERN_ERR_IO, "%s: cannot be read", path);
    } else if (status == TERN_OK && k->n == before) {
        status = tern_fail(err, TERN_ERR_ARG, "%s: there is no key in it", path);
    }
    free(line);
    (void)fclose(in);
    return status;
}

void keys_free(keys *k) {
    free(k->at);
    *k = (keys){0};
}

const key *keys_find(const keys *k, const char *given, size_t size) {
    uint8_t digest[KEY_DIGEST_BYTES];
    const key *found = NULL;
    digest_of(given, size, digest);
    for (size_t i = 0; i < k->n; i++) {
        volatile uint8_t differs = 0;
        for (size_t j = 0; j < KEY_DIGEST_BYTES; j++) {
            differs = (uint8_t)(differs | (digest[j] ^ k->at[i].digest[j]));
        }
        found = differs == 0 ? &k->at[i] : found;
    }
    return found;
}
