/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_ANSWER_SAMPLING_H
#define TERN_TOOLS_ANSWER_SAMPLING_H

/*
 * Sampling parameters and their sources. Each parameter comes from the first of: its flag, its
 * variable, generation_config.json beside the model, the model's own metadata, a default.
 */

#include "tools/answer/recommended.h"
#include "tools/load/loader.h"

typedef enum sampling_source {
    SAMPLING_BY_DEFAULT,
    SAMPLING_BY_METADATA,
    SAMPLING_BY_FILE,
    SAMPLING_BY_VARIABLE,
    SAMPLING_BY_FLAG,
    SAMPLING_BY_COMMAND /* /set in a chat */
} sampling_source;

typedef struct sampling {
    double values[SAMPLING_COUNT];
    sampling_source sources[SAMPLING_COUNT];
} sampling;

/*
 * as_recommended is for conversations: the model's recommendations apply, and without them
 * temperature 0.7 and top-p 0.95. Otherwise only flags and variables apply, and the default is
 * greedy. Unusable recommendations are reported in one line and ignored; with --strict, or if they
 * cannot be read, this fails. EXIT_DONE, or the exit status after a complaint.
 */
int sampling_read(const options *o, const loaded *l, bool as_recommended, sampling *out);

/*
 * Takes a value that a user typed for the parameter of an option, "temp" or "top_k", say. False
 * with *err set (TERN_ERR_ARG) for an unknown name, or a value out of range.
 */
bool sampling_set(sampling *s, const char *name, const char *value, sampling_parameter *which,
                  tern_error *err);

/* Puts the values into *params; its seed and bias do not change. */
void sampling_apply(const sampling *s, tern_sampler_params *params);

/* "temperature 0.7 (default), top-p 0.95 (default)": the parameters that have an effect, or
 * "greedy". */
void sampling_describe(const sampling *s, char *text, size_t size);

/* Prints a line for each parameter: name, value, source. */
void sampling_print(const sampling *s, FILE *out);

#endif
