/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CONVERT_COMMAND_H
#define TERN_TOOLS_CONVERT_COMMAND_H

/* What `tern convert` and `tern quantize` share: authoring/convert as the command line asks for it.
 */

#include <stdbool.h>

#include "authoring/convert/job.h"
#include "authoring/convert/sparse.h"
#include "tools/cli/options.h"
#include "tools/model/json.h"

/*
 * --type, --embedding-type, --output-type, --tl-tiles and those of int4. TERN_ERR_ARG: these are no
 * tiles, or int4 has no place in what --to asks for.
 */
TERN_MUST_CHECK tern_status convert_read_formats(const options *o, convert_formats *out,
                                                 tern_error *err);

/*
 * --block, --threshold and --keep, with the layers of --sparse. TERN_ERR_ARG: --block is not a pair
 * of sizes, sparse blocks have no place in what --to asks for, or it asks for nothing else and
 * other formats are asked for, too.
 */
TERN_MUST_CHECK tern_status convert_read_rule(const options *o, convert_sparse_rule *rule,
                                              tern_error *err);

/* --dense: a file of floats as a file of sparse blocks; the exit status. */
int convert_dense(const options *o);

/* What became of the blocks of a tensor: as text, and as an object of JSON. */
void convert_print_blocks(const char *name, const convert_sparse *s);
json_t *convert_json_blocks(const convert_sparse *s);

/* Whether --to asks for a folder. */
bool convert_to_folder(const options *o);

/* Whether --to asks for sparse layers beside the file of the first operand. */
bool convert_to_sidecar(const options *o);

/* A writer of what --to asks for, at targets_out. */
TERN_MUST_CHECK tern_status convert_writer_new(const options *o, tern_gguf_writer **out,
                                               tern_error *err);

/* --q4-map, which is optional, into *map, which the caller frees, and into the formats. */
TERN_MUST_CHECK tern_status convert_read_map(const options *o, convert_q4_map *map,
                                             convert_formats *formats, tern_error *err);

/* --imatrix, which is optional, likewise. */
TERN_MUST_CHECK tern_status convert_read_importance(const options *o, tern_importance *importance,
                                                    convert_formats *formats, tern_error *err);

/* Whether OUT was given where it is needed; a complaint says what is missing. */
bool convert_has_target(const options *o, const char *command);

/* --plan: what convert_job_plan has decided, as convert_report says it; the exit status. */
int convert_plan_report(const convert_job *job, const options *o);

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
