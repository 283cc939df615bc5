/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_ANSWER_RECOMMENDED_H
#define TERN_TOOLS_ANSWER_RECOMMENDED_H

/* What the makers of a model recommend for sampling: generation_config.json, or general.sampling.*
 * keys of a GGUF file. */

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

/* The option that a parameter belongs to: its name, its range, and its value when it does nothing
 * (of which --repeat-last-n has none: it is how far penalties look back). */
option_id sampling_option(sampling_parameter p);

typedef struct recommended {
    bool has[SAMPLING_COUNT];
    double values[SAMPLING_COUNT]; /* within the option's range */
} recommended;

/*
 * generation_config.json in a folder; nothing is recommended when there is none. "do_sample": false
 * is temperature 0 and nothing that cuts off tokens. A file that is not a JSON object, empty,
 * longer than 1 MiB, or that has a value out of range recommends nothing and is an error
 * (TERN_ERR_JSON, TERN_ERR_TRUNCATED, TERN_ERR_CONFIG), and so is what cannot be read (TERN_ERR_IO,
 * for no regular file too; TERN_ERR_NOMEM).
 */
TERN_MUST_CHECK tern_status recommended_in_folder(const char *folder, recommended *out,
                                                  tern_error *err);

/* The keys of a GGUF file; TERN_ERR_KEY_RANGE for a value that is not a number in the range. */
TERN_MUST_CHECK tern_status recommended_in_metadata(const tern_gguf *file, recommended *out,
                                                    tern_error *err);

/* Puts them as keys of a GGUF file. */
void recommended_put(const recommended *r, tern_gguf_writer *w);

#endif
