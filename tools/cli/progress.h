/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CLI_PROGRESS_H
#define TERN_TOOLS_CLI_PROGRESS_H

/* A line on standard error that overwrites itself while a file is written. */

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    double begin, printed; /* seconds */
    bool shown;
} progress;

/* Shows progress if remarks are wanted (tools/cli/output.h). */
progress progress_start(bool verbose);

/* Updates the line at most ten times per second; in bytes. `user` is a progress, so this can be a
 * tern_synth_progress. */
void progress_update(uint64_t done, uint64_t total, void *user);

/* Ends the line. */
void progress_end(const progress *p);

#endif
