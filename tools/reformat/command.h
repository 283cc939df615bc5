/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_REFORMAT_COMMAND_H
#define TERN_TOOLS_REFORMAT_COMMAND_H

/* Shared by `tern convert` and `tern quantize`: runs authoring/convert according to the command
 * line. */

#include <stdbool.h>

#include "authoring/convert/job.h"
#include "authoring/convert/sparse.h"
#include "base/json_tree/value.h"
#include "tools/cli/options.h"

/*
 * Reads --type, --embedding-type, --output-type, --tl-tiles and the options of int4. TERN_ERR_ARG:
 * invalid tiles, or the container of --to cannot hold int4.
 */
TERN_MUST_CHECK tern_status convert_read_formats(const options *o, convert_formats *out,
                                                 tern_error *err);

/*
 * Reads --block, --threshold and --keep, and the layers of --sparse. TERN_ERR_ARG: --block is not a
 * pair of sizes, the container of --to cannot hold sparse blocks, or it holds nothing else and
 * other formats are asked for.
 */
TERN_MUST_CHECK tern_status convert_read_rule(const options *o, convert_sparse_rule *rule,
                                              tern_error *err);

/* Converts the folder of an adapter (authoring/convert/peft.h); returns the exit status. */
int convert_adapter(const options *o);

/* For --dense: converts a file of floats to a file of sparse blocks; returns the exit status. */
int convert_dense(const options *o);

/* Describes the blocks of a tensor as text, and as a JSON object. */
void convert_print_blocks(const char *name, const convert_sparse *s);
json_t *convert_json_blocks(const convert_sparse *s);

/* True if --to asks for a folder. */
bool convert_to_folder(const options *o);

/* True if --to asks for sparse layers beside the file of the first operand. */
bool convert_to_sidecar(const options *o);

/* Makes a writer for the container of --to, at targets_out. */
TERN_MUST_CHECK tern_status convert_writer_new(const options *o, tern_gguf_writer **out,
                                               tern_error *err);

/*
 * Reads the optional --q4-map into *map, which the caller frees, and refers to it in the formats.
 */
TERN_MUST_CHECK tern_status convert_read_map(const options *o, convert_q4_map *map,
                                             convert_formats *formats, tern_error *err);

/* Reads the optional --imatrix in the same way. */
TERN_MUST_CHECK tern_status convert_read_importance(const options *o, tern_importance *importance,
                                                    convert_formats *formats, tern_error *err);

/* True if OUT was given or is not needed; a complaint says what is missing. */
bool convert_has_target(const options *o, const char *command);

/* For --plan: prints the decisions of convert_job_plan like convert_report; returns the exit
 * status. */
int convert_plan_report(const convert_job *job, const options *o);

/* The most common format of weights in blocks. */
tern_format convert_main_format(const convert_job *job);

/* Writes the model of the first operand to the second; returns the exit status. */
int convert_model(const options *o);

/* Calls convert_job_write with --verbose for progress, --threads and --force-ternary. */
TERN_MUST_CHECK tern_status convert_write(convert_job *job, tern_gguf_writer **w, const options *o,
                                          tern_error *err);

/* Reports what was written, as text or with --json as a line of JSON; returns the exit status. */
int convert_report(const convert_job *job, const options *o);

#endif
