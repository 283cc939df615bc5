/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is cut before each "GGUF" into the parts of a split model. If they are accepted, the
 * model must be readable.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/files/gguf/gguf.h"
#include "tests/fuzz/whole.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_PARTS = 4 };

static volatile uint64_t sink; /* keeps the reads below from being optimised away */

/* The start of the next part after `at`, or size. */
static size_t next_part(const uint8_t *data, size_t at, size_t size) {
    const uint8_t *found = size - at > 4 ? memmem(data + at + 4, size - at - 4, "GGUF", 4) : NULL;
    return found != NULL ? (size_t)(found - data) : size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tern_gguf *parts[MAX_PARTS] = {NULL};
    tern_gguf *whole = NULL;
    tern_error err = {0};
    size_t n = 0;
    for (size_t at = 0, end; at < size && n < MAX_PARTS; at = end) {
        end = next_part(data, at, size);
        if (tern_gguf_parse(data + at, end - at, "fuzz", &parts[n], &err) == TERN_OK)
            n++;
    }
    if (n > 0 && tern_gguf_join(parts, n, &whole, &err) == TERN_OK)
        sink += check_whole(whole);
    else if (n > 0 && err.message[0] == '\0')
        abort();
    tern_gguf_close(&whole);
    return 0;
}
