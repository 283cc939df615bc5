/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_KEYS_H
#define TERN_SERVE_HTTP_KEYS_H

/*
 * The keys that clients show, and the limits of each. Only the SHA-256 of a key is kept. It is also
 * the name under which the key's cache pages are shared: requests with another key never find them.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

enum { KEY_DIGEST_BYTES = 32, KEY_LABEL_BYTES = 32 };

/* 0: no limit. */
typedef struct key_limits {
    uint32_t requests;          /* requests for text at the same time */
    uint32_t tokens_per_minute; /* tokens of prompts and answers; all of a minute's may be used at
                                   once */
} key_limits;

/* A key lives until it is released as often as kept. */
typedef struct key {
    atomic_uint owners;
    uint8_t digest[KEY_DIGEST_BYTES];
    pthread_mutex_t lock;        /* protects the members below */
    char label[KEY_LABEL_BYTES]; /* for logs */
    key_limits limits;
    uint32_t running;   /* requests under way */
    double tokens_left; /* tokens it may use, as of `counted`; below 0 if answers took more */
    double counted;     /* in seconds of tern_clock_seconds */
} key;

typedef struct keys {
    key **at; /* [n], each kept */
    size_t n, capacity;
} keys;

/* Adds the keys of a comma-separated list, with the labels key1, key2, ... TERN_ERR_ARG: a key is
 * empty or was given before; TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status keys_add_list(keys *k, const char *list, tern_error *err);

/*
 * Adds the keys of a file: one in each line, alone or after a label, then limits such as requests=4
 * and tokens-per-minute=6000, all separated by spaces and tabs. A line ends with LF or CR LF and
 * has at most 4096 bytes, none of them a control character. A line whose first word begins with '#'
 * is a remark; no other word may begin with '#', since the text before it could be taken for a
 * label. Empty lines do not count. TERN_ERR_IO; TERN_ERR_NOMEM; TERN_ERR_ARG: a line is not valid
 * or repeats a key, or the file has no key. The message names the file and the line, but never
 * quotes the line.
 */
TERN_MUST_CHECK tern_status keys_add_file(keys *k, const char *path, tern_error *err);

void keys_free(keys *k);

/* Replaces *k by `fresh`. A key that was there before keeps its count of what it has used, under
 * its new label and limits. Empties fresh. */
void keys_replace(keys *k, keys *fresh);

/* Returns the key whose text is given, kept; NULL: there is none. Compares every byte of every
 * digest, so the time does not reveal how much of a key was right. */
key *keys_find(const keys *k, const char *given, size_t size);

void key_keep(key *k);
void key_release(key *k); /* NULL is fine */

/* Copies the label, because it may change while requests are under way. */
void key_label(key *k, char label[KEY_LABEL_BYTES]);

typedef enum key_verdict { KEY_MAY, KEY_REQUESTS, KEY_TOKENS } key_verdict;

/*
 * Begins a request if the limits allow it (KEY_MAY); key_leave ends it. Otherwise sets *limit to
 * the limit that is reached, and *seconds to the time after which asking again may help.
 */
key_verdict key_enter(key *k, double now, uint32_t *limit, double *seconds);
void key_leave(key *k);

/* Counts tokens that were used. */
void key_spend(key *k, double now, uint64_t tokens);

#endif
