/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CONVERT_COMMAND_H
#define TERN_TOOLS_CONVERT_COMMAND_H

/* What `tern convert` and `tern quantize` share: authoring/convert as the command line asks for it.
 */

#include "authoring/convert/job.h"
#include "tools/cli/options.h"

/* --type, --embedding-type, --output-type and --tl-tiles. TERN_ERR_ARG: these are no tiles. */
TERN_MUST_CHECK tern_status convert_read_formats(const options *o, convert_formats *out,
                                                 tern_error *err);

/* convert_job_write: progress by --verbose, threads by --threads, --force-ternary as it says. */
TERN_MUST_CHECK tern_status convert_write(convert_job *job, tern_gguf_writer **w, const options *o,
                                          tern_error *err);

/* What was written, as text or with --json as a line of JSON; the exit status. */
int convert_report(const convert_job *job, const options *o);

#endif
