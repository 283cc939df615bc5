/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_FAULTS_SHIM_H
#define TERN_TESTS_FAULTS_SHIM_H

/*
 * A library for LD_PRELOAD that makes a program's requests to the system fail, one call at a time.
 *
 * Each call of a chosen kind is an event; events are numbered from 1 in the order they happen. A
 * place is the whole stack of calls that leads to an event, identified by module and offset, so
 * that it is the same in every run. The environment tells the shim what to do:
 *
 *   TERN_FAULTS_KINDS  alloc (malloc and its kin, mmap, pthread_create), system (open, read, write,
 *                      fstat, rename, fsync, close, pipe: in the C library too, by seccomp)
 *   TERN_FAULTS_AT     N: at event N; N+: at event N and at all later ones of its kind; place=HASH:
 *                      at the first event of that place, whatever its number; unset: only watch
 *   TERN_FAULTS_ACT    fail (default); signal=NUMBER; truncate=FILE to one page; touch=FILE
 *   TERN_FAULTS_HIDE   FOLDER: its files cannot be opened (ENOENT), in addition to the above
 *   TERN_FAULTS_LOG    file for the report, which is written when the process exits
 *
 * The report: "place ID HASH KIND FIRST LAST COUNT HIT NAME FRAME..." with the numbers of its first
 * and last event, the number of events, and how many of them were made to fail; "live ID BYTES" for
 * each block or map that was never released; "open FD" for each descriptor above 2 that is still
 * open.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum shim_kind { SHIM_ALLOC, SHIM_SYSTEM, SHIM_KINDS } shim_kind;

/* Records an event. Returns true if it must fail. `what` is a literal, the function's name. */
bool shim_event(shim_kind kind, const char *what);

/* Record memory that was handed out and given back. Its place is that of the thread's last
 * event. */
void shim_gave(const void *address, size_t bytes);
void shim_took(const void *address);

/* While this is true on a thread, its calls are the shim's own and not events. */
bool shim_own(bool own);

/* system.c: starts to trap system calls; shim_call makes one that is not trapped. */
bool shim_trap_system(const char *hidden);
long shim_call(long number, long a, long b, long c, long d, long e);

/* places.c: the table of places. IDs are small numbers; 0 means none. */
void shim_places_begin(void);
unsigned shim_place_here(shim_kind kind, const char *what, uint64_t event);
uint64_t shim_place_hash(unsigned place);
void shim_place_hit(unsigned place);
void shim_places_report(int fd);
void shim_line(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
