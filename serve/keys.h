/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_KEYS_H
#define TERN_SERVE_KEYS_H

/*
 * The keys that clients show. What is kept of a key is its SHA-256, which is also the name under
 * which its pages of cache are shared: those of one key are never found by another.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

enum { KEY_DIGEST_BYTES = 32, KEY_LABEL_BYTES = 32 };

typedef struct key {
    char label[KEY_LABEL_BYTES]; /* for logs */
    uint8_t digest[KEY_DIGEST_BYTES];
} key;

typedef struct keys {
    key *at; /* [n] */
    size_t n, capacity;
} keys;

/* Adds the keys of a list separated by commas, with the labels key1, key2, ... TERN_ERR_ARG for an
 * empty one, TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status keys_add_list(keys *k, const char *list, tern_error *err);

/*
 * Adds those of a file: one in a line, alone or after a label and blanks; '#' begins a remark,
 * empty lines do not count. TERN_ERR_IO; TERN_ERR_ARG names the line that is no key, and a file
 * without any.
 */
TERN_MUST_CHECK tern_status keys_add_file(keys *k, const char *path, tern_error *err);

void keys_free(keys *k);

/* The key whose text is given; NULL: there is none. Looks at every byte of every digest, so the
 * time tells nothing about how much of a key was right. */
const key *keys_find(const keys *k, const char *given, size_t size);

#endif
