/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/template/marked.h"

#include <stdlib.h>
#include <string.h>

/* Room for `more` further bytes. */
static tern_status reserve(tern_marked_text *t, size_t more, size_t most) {
    if (more > most || t->size > most - more)
        return TERN_ERR_ARG;
    const size_t need = t->size + more;
    if (need <= t->capacity)
        return TERN_OK;
    char *bytes = realloc(t->bytes, 2 * need);
    if (bytes == NULL)
        return TERN_ERR_NOMEM;
    t->bytes = bytes;
    uint8_t *marks = realloc(t->marks, 2 * need);
    if (marks == NULL)
        return TERN_ERR_NOMEM;
    t->marks = marks;
    t->capacity = 2 * need;
    return TERN_OK;
}

/* marks: NULL where all bytes have the mark `same`. */
static tern_status append(tern_marked_text *t, tern_span bytes, const uint8_t *marks, uint8_t same,
                          size_t most) {
    const tern_status status = reserve(t, bytes.size, most);
    if (status != TERN_OK || bytes.size == 0)
        return status;
    memcpy(t->bytes + t->size, bytes.data, bytes.size);
    if (marks != NULL)
        memcpy(t->marks + t->size, marks, bytes.size);
    else
        memset(t->marks + t->size, same, bytes.size);
    t->size += bytes.size;
    return TERN_OK;
}

tern_status tern_marked_add(tern_marked_text *t, tern_span bytes, uint8_t mark, size_t most) {
    return append(t, bytes, NULL, mark, most);
}

tern_status tern_marked_add_marks(tern_marked_text *t, tern_span bytes, const uint8_t *marks,
                                  size_t most) {
    return append(t, bytes, marks, 0, most);
}

void tern_marked_free(tern_marked_text *t) {
    free(t->bytes);
    free(t->marks);
    *t = (tern_marked_text){0};
}

uint8_t tern_mark_of_message(size_t i) {
    return i < TERN_MARK_MESSAGES ? (uint8_t)(i + 1) : TERN_MARK_MESSAGES;
}
