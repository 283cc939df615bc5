/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_SUPPORT_FAILING_MALLOC_H
#define TERN_TESTS_SUPPORT_FAILING_MALLOC_H

/*
 * An allocator that fails at one call, and counts the blocks in use, for the one file of a test
 * program that includes this. Sanitizers and other C libraries have their own malloc. Then
 * ALLOCATIONS_CAN_FAIL is false, and nothing is counted.
 */

#include <stdbool.h>
#include <stdlib.h>

#include "tests/support/sanitized.h"

static size_t allocations_asked, allocation_that_fails; /* numbered from 1; 0: none fails */
static long allocations_live;                           /* blocks that were not freed */

#if !defined(SANITIZED) && defined(__GLIBC__)

#define ALLOCATIONS_CAN_FAIL true

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *p);

static bool allocation_fails(void) {
    return ++allocations_asked == allocation_that_fails;
}

void *malloc(size_t size) {
    void *p = allocation_fails() ? NULL : __libc_malloc(size);
    allocations_live += p != NULL;
    return p;
}

void *calloc(size_t n, size_t size) {
    void *p = allocation_fails() ? NULL : __libc_calloc(n, size);
    allocations_live += p != NULL;
    return p;
}

void *realloc(void *old, size_t size) {
    void *p = allocation_fails() ? NULL : __libc_realloc(old, size);
    allocations_live += p != NULL && old == NULL;
    return p;
}

void *aligned_alloc(size_t alignment, size_t size) {
    void *p = allocation_fails() ? NULL : __libc_memalign(alignment, size);
    allocations_live += p != NULL;
    return p;
}

void free(void *p) {
    allocations_live -= p != NULL;
    __libc_free(p);
}

#else
#define ALLOCATIONS_CAN_FAIL false
#endif

#endif
