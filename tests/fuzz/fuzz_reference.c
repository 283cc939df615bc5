/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes go into the reader of references. An accepted one must be readable and within
 * bounds. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/crossval/reference.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink; /* keeps the reads below from being optimised away */

static void touch_file_name(const char *name) {
    if (name != NULL && (name[0] == '\0' || name[0] == '.' || strchr(name, '/') != NULL))
        abort();
}

static void touch_case(const reference_case *c) {
    if (c->n_tokens == 0 || c->name == NULL)
        abort();
    for (size_t i = 0; i < c->n_tokens; i++)
        sink += (uint64_t)c->tokens[i];
    for (size_t i = 0; i < c->n_greedy; i++)
        sink += (uint64_t)c->greedy[i] + (c->margins != NULL && c->margins[i] > 0);
    for (size_t i = 0; i < c->n_rows; i++) {
        for (size_t k = 0; k < c->rows[i].n; k++)
            if (c->rows[i].ids[k] < 0 || c->rows[i].logits[k] - c->rows[i].logits[k] != 0)
                abort();
    }
    touch_file_name(c->logits);
    touch_file_name(c->keys);
    touch_file_name(c->values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    reference *r = NULL;
    tern_error err = {0};
    if (reference_parse("folder/fuzz.json", (const char *)data, size, &r, &err) != TERN_OK) {
        if (r != NULL || err.message[0] == '\0')
            abort();
        return 0;
    }
    for (size_t i = 0; i < r->n_cases; i++)
        touch_case(&r->cases[i]);
    reference_free(&r);
    return 0;
}
