/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_FAILING_MALLOC_H
#define TERN_TESTS_FAILING_MALLOC_H

/*
 * Allocation by number: a test program that includes this (one file of it) says in allocations_left
 * how many succeed before one fails. Sanitizers and other C libraries have their own malloc: there
 * ALLOCATIONS_CAN_FAIL is false.
 */

#include <stdbool.h>
#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

static long allocations_left = -1; /* allocations until one fails; -1: none does */

#if !defined(SANITIZED) && defined(__GLIBC__)

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

static bool allocation_fails(void) {
    return allocations_left >= 0 && allocations_left-- == 0;
}

void *malloc(size_t size) {
    return allocation_fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size) {
    return allocation_fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size) {
    return allocation_fails() ? NULL : __libc_realloc(p, size);
}

#define ALLOCATIONS_CAN_FAIL true
#else
#define ALLOCATIONS_CAN_FAIL false
#endif

#endif
