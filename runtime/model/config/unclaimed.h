/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_CONFIG_UNCLAIMED_H
#define TERN_RUNTIME_MODEL_CONFIG_UNCLAIMED_H

/*
 * A model is used whole or not at all. Whatever a file says of its graph, in keys of its
 * architecture and in tensors, is computed, known to make no difference, or refused. Keys and
 * tensors that tern does not know are listed. docs/strict.md has the table of keys, and the
 * tensors.
 */

#include "runtime/model/config/config.h"

/* The value that a key must have for the graph to be the one that tern computes. */
typedef enum tern_key_kind {
    TERN_KEY_READ,   /* anything: the configuration reads and checks it */
    TERN_KEY_TELLS,  /* anything: no result depends on it, or only together with a refused key */
    TERN_KEY_ZERO,   /* 0, by which such files say that there is none */
    TERN_KEY_FACTOR, /* 1, or 0, by which such files say that there is none */
    TERN_KEY_FALSE,
    TERN_KEY_TRUE,
    TERN_KEY_WINDOW, /* 0, or at least the context that the model was trained for */
    TERN_KEY_LAYOUT, /* a known name for the order of rows of q and k */
    TERN_KEY_NEVER   /* refused, whatever it says */
} tern_key_kind;

/* The rule for the key ARCH.<suffix>. A suffix that ends with a dot stands for all keys that begin
 * with it. */
typedef struct tern_key_rule {
    const char *suffix;
    tern_key_kind kind;
    const char *what; /* what the key asks for; NULL: it is never refused */
} tern_key_rule;

/* All rules; *n gets their number. Static storage. */
const tern_key_rule *tern_key_rules(size_t *n);

/* "key llama.foo", "tensor bar.weight", printable, in the order of the file. */
typedef struct tern_unused {
    size_t n;
    char **names;
} tern_unused;

/*
 * Checks every key and every tensor of a file, and of all parts of a split model. *out lists the
 * unknown ones; the caller frees it, also on errors. TERN_ERR_CONFIG: a key asks for something that
 * is not supported; TERN_ERR_ARCH: a tensor of the graph is not used; TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_unused_find(const tern_gguf *file, const tern_config *c,
                                             tern_unused *out, tern_error *err);

void tern_unused_free(tern_unused *list);

#endif
