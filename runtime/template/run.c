/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/template/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK_BYTES = 64 << 10, ALIGN = 16 };

struct tern_tpl_block {
    tern_tpl_block *older;
    char *next; /* what is free begins here */
    _Alignas(ALIGN) char bytes[];
};

void tern_tpl_free(tern_tpl *x) {
    while (x->blocks != NULL) {
        tern_tpl_block *older = x->blocks->older;
        free(x->blocks);
        x->blocks = older;
    }
}

static bool add_block(tern_tpl *x, size_t need) {
    const size_t size = need > BLOCK_BYTES / 4 ? need : BLOCK_BYTES;
    if (size > TERN_TPL_MEMORY - x->used)
        return tern_tpl_fail(x, TERN_ERR_TEMPLATE, "more than %d MiB of memory are needed",
                             TERN_TPL_MEMORY >> 20);
    tern_tpl_block *block = calloc(1, sizeof *block + size);
    if (block == NULL)
        return tern_tpl_fail(x, TERN_ERR_NOMEM, "no memory for %zu bytes", size);
    block->older = x->blocks;
    block->next = block->bytes;
    x->blocks = block;
    x->used += size;
    x->room = size;
    return true;
}

void *tern_tpl_take(tern_tpl *x, size_t count, size_t size) {
    if (x->failed)
        return NULL;
    if (size > 0 && count > TERN_TPL_MEMORY / size) {
        (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "more than %d MiB of memory are needed",
                            TERN_TPL_MEMORY >> 20);
        return NULL;
    }
    const size_t need = (count * size + ALIGN - 1) / ALIGN * ALIGN;
    if ((x->blocks == NULL || need > x->room) && !add_block(x, need))
        return NULL;
    void *out = x->blocks->next;
    x->blocks->next += need;
    x->room -= need;
    return out;
}

bool tern_tpl_work(tern_tpl *x, uint64_t steps) {
    x->work += steps;
    if (x->work > TERN_TPL_WORK)
        return tern_tpl_fail(x, TERN_ERR_TEMPLATE, "more than %d steps are needed", TERN_TPL_WORK);
    return !x->failed;
}

bool tern_tpl_enter(tern_tpl *x) {
    if (++x->depth > TERN_TPL_DEPTH)
        return tern_tpl_fail(x, TERN_ERR_TEMPLATE, "nested more than %d deep", TERN_TPL_DEPTH);
    return tern_tpl_work(x, 1);
}

void tern_tpl_leave(tern_tpl *x) {
    x->depth--;
}

bool tern_tpl_fail(tern_tpl *x, tern_status status, const char *format, ...) {
    if (x->failed)
        return false;
    char what[TERN_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    x->failed = true;
    if (status == TERN_ERR_TEMPLATE)
        (void)tern_fail(&x->error, status, "chat template: line %u: %s", x->line, what);
    else
        (void)tern_fail(&x->error, status, "%s", what);
    return false;
}
