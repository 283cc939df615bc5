/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_ANSWER_RECOMMENDED_H
#define TERN_TOOLS_ANSWER_RECOMMENDED_H

/* The sampling that a model's makers recommend: a JSON file beside the model, or keys
 * general.sampling.* of a GGUF file. */

#include "authoring/gguf_writer.h"
#include "tern/gguf.h"
#include "tern/tern.h"
#include "tools/cli/options.h"

typedef enum sampling_parameter {
    SAMPLING_TEMPERATURE,
    SAMPLING_TOP_K,
    SAMPLING_TOP_P,
    SAMPLING_MIN_P,
    SAMPLING_REPETITION,
    SAMPLING_PRESENCE,
    SAMPLING_FREQUENCY,
    SAMPLING_LAST_N,
    SAMPLING_COUNT
} sampling_parameter;

/* The option of a parameter: it has the name, the range, and the value that has no effect (except
 * --repeat-last-n, which says how far penalties look back). */
option_id sampling_option(sampling_parameter p);

typedef struct recommended {
    bool has[SAMPLING_COUNT];
    double values[SAMPLING_COUNT]; /* within the option's range */
} recommended;

/*
 * Reads generation_config.json in a folder; without the file nothing is recommended. "do_sample":
 * false means temperature 0, and nothing cuts off tokens. A file that is empty, longer than 1 MiB
 * or not a JSON object, or a value out of range, recommends nothing and is an error (TERN_ERR_JSON,
 * TERN_ERR_TRUNCATED, TERN_ERR_CONFIG). So is a file that cannot be read (TERN_ERR_IO, also if it
 * is not a regular file; TERN_ERR_NOMEM).
 */
TERN_MUST_CHECK tern_status recommended_in_folder(const char *folder, recommended *out,
                                                  tern_error *err);

/*
 * The same for a model's file: in a folder of several models, NAME.generation_config.json speaks
 * for NAME.gguf alone, and generation_config.json for those without such a file.
 */
TERN_MUST_CHECK tern_status recommended_beside(const char *model, recommended *out,
                                               tern_error *err);

/* Reads the keys of a GGUF file; TERN_ERR_KEY_RANGE: a value is not a number in the range. */
TERN_MUST_CHECK tern_status recommended_in_metadata(const tern_gguf *file, recommended *out,
                                                    tern_error *err);

/* Writes them as keys of a GGUF file. */
void recommended_put(const recommended *r, tern_gguf_writer *w);

#endif
