/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/template/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { ALIGN = 16 };

const tern_tpl_limits tern_tpl_usual = {
    .work = TERN_TPL_WORK, .memory = TERN_TPL_MEMORY, .block = 64 << 10, .output = TERN_TPL_OUTPUT};

struct tern_tpl_block {
    tern_tpl_block *older;
    char *next; /* start of the free memory */
    _Alignas(ALIGN) char bytes[];
};

void tern_tpl_free(tern_tpl *x) {
    while (x->blocks != NULL) {
        tern_tpl_block *older = x->blocks->older;
        free(x->blocks);
        x->blocks = older;
    }
}

static bool too_much_memory(tern_tpl *x) {
    return tern_tpl_fail(x, TERN_ERR_TEMPLATE, "more than %zu MiB of memory are needed",
                         x->limits.memory >> 20);
}

static bool add_block(tern_tpl *x, size_t need) {
    const size_t size = need > x->limits.block / 4 ? need : x->limits.block;
    if (size > x->limits.memory - x->used)
        return too_much_memory(x);
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
    if (size > 0 && count > x->limits.memory / size) {
        (void)too_much_memory(x);
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
    if (x->work > x->limits.work)
        return tern_tpl_fail(x, TERN_ERR_TEMPLATE, "more than %llu steps are needed",
                             (unsigned long long)x->limits.work);
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
