/* SPDX-License-Identifier: Apache-2.0 */

#include "base/arena_plan.h"

void *tern_take(tern_taker *t, size_t count, size_t size) {
    void *memory = NULL;
    if (t->arena == NULL) {
        t->overflow |= !tern_arena_reserve(&t->bytes, count, size);
        return NULL;
    }
    if (t->status == TERN_OK)
        t->status = tern_arena_take(t->arena, count, size, &memory, t->err);
    return memory;
}

size_t tern_taker_times(tern_taker *t, size_t a, size_t b) {
    size_t product = 0;
    t->overflow |= __builtin_mul_overflow(a, b, &product);
    return product;
}
