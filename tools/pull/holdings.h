/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_PULL_HOLDINGS_H
#define TERN_TOOLS_PULL_HOLDINGS_H

/* The form of a repository without GGUF files, by the names of its files. */

#include <stdbool.h>
#include <stddef.h>

typedef struct holdings {
    size_t weights;    /* files of weights of the model */
    bool adapter;      /* changes to another model's weights */
    bool consolidated; /* the weights once more, as their makers' own program wants them */
} holdings;

holdings holdings_of(const char *const *files, size_t n);

/* True for weights and the files that `tern convert` reads with them. Other folders hold other
 * forms of the same model. */
bool holdings_want(const holdings *h, const char *file);

#endif
