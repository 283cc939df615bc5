/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_KEYS_H
#define TERN_SERVE_HTTP_KEYS_H

/*
 * The keys that clients show, and what each may ask for. What is kept of a key is its SHA-256,
 * which is also the name under which its pages of cache are shared: those of one key are never
 * found by another.
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
    uint32_t requests;          /* for text, at once */
    uint32_t tokens_per_minute; /* of prompts and answers; as many may come at once */
} key_limits;

/* Lives until it is released as often as kept. */
typedef struct key {
    atomic_uint owners;
    uint8_t digest[KEY_DIGEST_BYTES];
    pthread_mutex_t lock;        /* of what follows */
    char label[KEY_LABEL_BYTES]; /* for logs */
    key_limits limits;
    uint32_t running;   /* requests */
    double tokens_left; /* that it may use at `counted`; below 0 when answers took more */
    double counted;     /* seconds of tern_clock_seconds */
} key;

typedef struct keys {
    key **at; /* [n] kept */
    size_t n, capacity;
} keys;

/* Adds the keys of a list separated by commas, with the labels key1, key2, ... TERN_ERR_ARG for an
 * empty one and one that is there already, TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status keys_add_list(keys *k, const char *list, tern_error *err);

/*
 * Adds those of a file: one in a line, alone or after a label, then limits such as requests=4 and
 * tokens-per-minute=6000, all separated by spaces and tabs. A line ends with LF or CR LF and has at
 * most 4096 bytes, none of them a control character. A line whose first word begins with '#' is a
 * remark; '#' begins no other word, since what stands before it could be taken for a label. Empty
 * lines do not count. TERN_ERR_IO; TERN_ERR_ARG names the file and the line that is not a key, that
 * has one for the second time, and a file without any. No message has a part of the line.
 */
TERN_MUST_CHECK tern_status keys_add_file(keys *k, const char *path, tern_error *err);

void keys_free(keys *k);

/* Puts `fresh` in the place of *k. A key that was there before goes on with what it has used, under
 * its new label and limits. Empties fresh. */
void keys_replace(keys *k, keys *fresh);

/* The key whose text is given, kept; NULL: there is none. Looks at every byte of every digest, so
 * the time tells nothing about how much of a key was right. */
key *keys_find(const keys *k, const char *given, size_t size);

void key_keep(key *k);
void key_release(key *k); /* NULL is fine */

/* A copy, because a label may change while requests are under way. */
void key_label(key *k, char label[KEY_LABEL_BYTES]);

typedef enum key_verdict { KEY_MAY, KEY_REQUESTS, KEY_TOKENS } key_verdict;

/*
 * Another request at once, if the limits let it: then key_leave ends it. Otherwise the limit that
 * is reached, its value, and in how many seconds asking again may help.
 */
key_verdict key_enter(key *k, double now, uint32_t *limit, double *seconds);
void key_leave(key *k);

/* Tokens that were used. */
void key_spend(key *k, double now, uint64_t tokens);

#endif
