/* SPDX-License-Identifier: Apache-2.0 */

#include "base/arena.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/os/os.h"
#include "tern/kernels.h"

/* count * size rounded up to TERN_ALIGN; false on overflow. */
static bool rounded_bytes(size_t count, size_t size, size_t *bytes) {
    size_t product;
    if (__builtin_mul_overflow(count, size, &product) ||
        __builtin_add_overflow(product, (size_t)(TERN_ALIGN - 1), &product))
        return false;
    *bytes = product / TERN_ALIGN * TERN_ALIGN;
    return true;
}

tern_status tern_arena_new(size_t size, bool huge_pages, tern_arena *out, tern_error *err) {
    tern_arena arena = {.base = NULL, .size = size, .used = 0};
    if (size > 0) {
        void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (base == MAP_FAILED)
            return tern_fail(err, TERN_ERR_NOMEM, "cannot map %zu bytes of memory", size);
        if (huge_pages && size >= 2 * (size_t)TERN_HUGE_PAGE_BYTES)
            tern_os_use_huge_pages(base, size);
        arena.base = base;
    }
    *out = arena;
    return TERN_OK;
}

tern_arena tern_arena_over(const void *memory, size_t size) {
    return (tern_arena){.base = (unsigned char *)(uintptr_t)memory, .size = size, .borrowed = true};
}

void tern_arena_give_back(const tern_arena *arena, size_t begin, size_t end) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), base = (uintptr_t)arena->base;
    const uintptr_t first = (base + begin + page - 1) / page * page;
    const uintptr_t last = (base + end) / page * page;
    if (first < last)
        tern_os_drop_pages((void *)first, last - first);
}

void tern_arena_free(tern_arena *arena) {
    if (arena->base != NULL && !arena->borrowed)
        munmap(arena->base, arena->size);
    *arena = (tern_arena){.base = NULL};
}

tern_status tern_arena_take(tern_arena *arena, size_t count, size_t size, void **out,
                            tern_error *err) {
    size_t bytes;
    if (!rounded_bytes(count, size, &bytes) || bytes > arena->size - arena->used)
        return tern_fail(err, TERN_ERR_ARENA,
                         "arena of %zu bytes is exhausted: %zu are used, %zu x %zu are wanted",
                         arena->size, arena->used, count, size);
    *out = arena->base + arena->used;
    arena->used += bytes;
    return TERN_OK;
}

bool tern_arena_reserve(size_t *total, size_t count, size_t size) {
    size_t bytes;
    return rounded_bytes(count, size, &bytes) && !__builtin_add_overflow(*total, bytes, total);
}
