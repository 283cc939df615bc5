/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_REPLAY_RECORDING_READER_H
#define TERN_TOOLS_REPLAY_RECORDING_READER_H

/* Reads a recording (tools/record/recording.h) answer by answer. */

#include <stdint.h>
#include <stdio.h>

#include "base/json_tree/value.h"

typedef struct recording_reader {
    const char *path;
    FILE *file;
    char *line; /* from getline */
    size_t capacity;
    uint32_t number; /* of the latest line, from 1 */
} recording_reader;

/* Opens the file ("-": standard input). Returns the exit status. Close it in any case; a zeroed
 * struct can be closed, too. The path must outlive it. */
int recording_reader_open(const char *path, recording_reader *r);

/*
 * The next answer, whose fields and rules have been checked; the caller decrefs it. NULL: there are
 * no more, or, with *status EXIT_FAILED after a complaint, a line is none of a recording. A last
 * line without its end, which a killed server left, is passed over with a remark, and so is the
 * line that says that the recording was full.
 */
json_t *recording_reader_next(recording_reader *r, int *status);

void recording_reader_close(recording_reader *r);

#endif
