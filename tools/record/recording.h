/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_RECORD_RECORDING_H
#define TERN_TOOLS_RECORD_RECORDING_H

/*
 * A recording: a file with a line of JSON for each answer of a server, for tern replay.
 *
 *   A line is what a receipt says of the answer and of how the model's files are read
 * (fields_record in receipts/fields_record.c). Headers and keys are not in it, nor where files lie.
 *
 *   Lines are whole. Each is one write to the end of the file; if it cannot be written completely,
 *   what was written is taken back. What a killed program left of a line is taken away when the
 * file is opened again.
 *
 *   The file ends clearly. A line that would make it larger than the limit is not written: the last
 *   line then says that the recording is full (RECORD_END_SCHEMA), and so does standard error. The
 *   server goes on.
 *
 * Only its owner may read the file, and only one program at a time writes to it.
 */

#include <stdint.h>

#include "base/json_tree/value.h"

typedef struct recording recording;

/* Opens or creates the file. Refuses what is no regular file, has other content, is recorded to by
 * another program, or has reached the limit. Returns the exit status, after a complaint unless it
 * is EXIT_DONE. The path must outlive the recording. */
int recording_open(const char *path, uint64_t most_bytes, recording **out);

/* Appends a line, from any thread. NULL: there was no memory for it. After an error or at the limit
 * the recording ends, with a complaint. */
void recording_add(recording *r, const json_t *line);

/* Sets *r to NULL; NULL is fine. */
void recording_close(recording **r);

#endif
