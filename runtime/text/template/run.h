/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TEMPLATE_RUN_H
#define TERN_RUNTIME_TEXT_TEMPLATE_RUN_H

/*
 * One run of a template: its memory, its limits and its first failure. Shared by the files of this
 * folder; others include template.h.
 *
 * Functions that fail return NULL or false. The run remembers the first failure with its line, so
 * callers only return. All memory belongs to the run and lives as long as it does.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/span.h"
#include "tern/status.h"

enum {
    TERN_TPL_MEMORY = 256 << 20, /* bytes of a run */
    TERN_TPL_WORK = 20 << 20,    /* steps; 64 copied bytes are one, too */
    TERN_TPL_SOURCE = 1 << 20,   /* bytes of a template */
    TERN_TPL_OUTPUT = 64 << 20,  /* bytes of the text that is written */
    TERN_TPL_DEPTH = 400,        /* statements, expressions and calls inside each other */
    TERN_TPL_RANGE = 100000      /* numbers of a range */
};

/* Limits of a run. */
typedef struct tern_tpl_limits {
    uint64_t work; /* steps */
    size_t memory; /* bytes */
    size_t block;  /* bytes to ask of the system at a time, unless one thing needs more */
    size_t output; /* bytes of a text */
} tern_tpl_limits;

extern const tern_tpl_limits tern_tpl_usual; /* the numbers above */

typedef struct tern_tpl_block tern_tpl_block;

typedef struct tern_tpl {
    tern_tpl_limits limits;
    tern_tpl_block *blocks; /* the newest first */
    size_t used, room;      /* bytes of all blocks; bytes that are left in the newest */
    uint64_t work;
    unsigned depth;
    unsigned line; /* line of the statement or expression that is read or run */
    int64_t now;   /* seconds since 1970, for strftime_now */
    bool failed;
    tern_error error; /* the first failure */
} tern_tpl;

void tern_tpl_free(tern_tpl *x);

/* Zero bytes aligned for any value; NULL after a failure. */
void *tern_tpl_take(tern_tpl *x, size_t count, size_t size);

/* Counts steps; false after a failure. */
bool tern_tpl_work(tern_tpl *x, uint64_t steps);

/* Goes one level deeper; false after a failure. Call leave in any case. */
bool tern_tpl_enter(tern_tpl *x);
void tern_tpl_leave(tern_tpl *x);

/* Remembers a failure, unless there was one; with its line if the template is at fault. Always
 * false. */
bool tern_tpl_fail(tern_tpl *x, tern_status status, const char *format, ...) TERN_PRINTF(3, 4);

#endif
