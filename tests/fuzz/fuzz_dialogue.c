/* SPDX-License-Identifier: Apache-2.0 */
/* Saved conversations. Any bytes are refused, or give a dialogue that survives being written. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/terminal/dialogue_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A dialogue only takes a message of the role whose turn it is. It stays the same when written and
 * read again. */
static void check(const dialogue *d, uint64_t attempts) {
    tern_error err = {0};
    char *text = dialogue_to_json("written", d, attempts, &err);
    dialogue again = {0};
    uint64_t attempts_again;
    if (text == NULL ||
        dialogue_from_json("written", text, strlen(text), &again, &attempts_again, &err) != TERN_OK)
        abort();
    if (again.n != d->n || attempts_again != attempts || !dialogue_may_add(d, "user"))
        abort();
    for (size_t i = 0; i < d->n; i++)
        if (strcmp(d->messages[i].role, again.messages[i].role) != 0 ||
            strcmp(d->messages[i].content, again.messages[i].content) != 0)
            abort();
    free(text);
    dialogue_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    dialogue d = {0};
    uint64_t attempts;
    tern_error err = {0};
    if (dialogue_from_json("input", (const char *)data, size, &d, &attempts, &err) == TERN_OK)
        check(&d, attempts);
    dialogue_free(&d);
    return 0;
}
