/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_MODEL_TUNE_FORGE_H
#define TERN_TESTS_MODEL_TUNE_FORGE_H

/* Complete files of choices of this machine, except that their list of choices is forged. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash64.h"
#include "runtime/model/tune/file.h"

/* The text of such a file, with list[n] as its choices. The caller frees it; NULL without
 * memory. */
static inline char *forge_tuning(const tern_tune_machine *machine, const char *list, size_t n,
                                 size_t *size) {
    const tern_tuning none = {.n = 0};
    char *text = tern_tune_text(machine, &none, size);
    if (text == NULL)
        return NULL;
    const size_t head = (size_t)(strstr(text, "[]") - text);
    char *forged = malloc(head + n + 64);
    if (forged != NULL) {
        tern_hash64 h;
        memcpy(forged, text, head);
        memcpy(forged + head, list, n);
        tern_hash64_start(&h);
        tern_hash64_add(&h, forged, head + n);
        *size = head + n +
                (size_t)snprintf(forged + head + n, 64, ",\"check\":\"%016" PRIx64 "\"}\n",
                                 tern_hash64_value(&h));
    }
    free(text);
    return forged;
}

#endif
