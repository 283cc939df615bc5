/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CONVERT_COMMAND_H
#define TERN_TOOLS_CONVERT_COMMAND_H

/* What `tern convert` and `tern quantize` share: authoring/convert as the command line asks for it.
 */

#include <stdbool.h>

#include "authoring/convert/job.h"
#include "tools/cli/options.h"

/* --type, --embedding-type, --output-type and --tl-tiles. TERN_ERR_ARG: these are no tiles. */
TERN_MUST_CHECK tern_status convert_read_formats(const options *o, convert_formats *out,
                                                 tern_error *err);

/* Whether --to asks for an IEBIN folder. */
bool convert_to_folder(const options *o);

/* A writer of what --to asks for, at the second operand. */
TERN_MUST_CHECK tern_status convert_writer_new(const options *o, tern_gguf_writer **out,
                                               tern_error *err);

/* The format that most weights of blocks have. */
tern_format convert_main_format(const convert_job *job);

/* A model, as the first operand names it, written at the second; the exit status. */
int convert_model(const options *o);

/* convert_job_write: progress by --verbose, threads by --threads, --force-ternary as it says. */
TERN_MUST_CHECK tern_status convert_write(convert_job *job, tern_gguf_writer **w, const options *o,
                                          tern_error *err);

/* What was written, as text or with --json as a line of JSON; the exit status. */
int convert_report(const convert_job *job, const options *o);

#endif
