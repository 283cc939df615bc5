/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_REPLAY_RECORDED_ANSWER_H
#define TERN_TOOLS_REPLAY_RECORDED_ANSWER_H

/*
 * An answer as a document records it, read so that it can be asked for again: a receipt of a run or
 * of an answer, or a line of a recording. They name what belongs to an answer in the same way:
 * run, sampler, form, prompt and output.
 */

#include "receipts/rerun.h"
#include "tools/record/receipt.h"
#include "tools/replay/recorded_form.h"

typedef struct recorded_answer {
    const json_t *record; /* borrowed; the plan points into it, too */
    rerun_plan plan;      /* points into this struct */

    /* owned */
    int32_t *prompt, *tokens;
    receipt_point *points;
    tern_logit_bias *bias;
    int32_t *stop_tokens;
    const char **stop_texts;
    tern_sampler_params sampling;
    recorded_form form;
} recorded_answer;

/* Reads a document that keeps the rules of its kind. False: no memory. *a must stay where it is,
 * and be closed in any case. */
bool recorded_answer_read(const json_t *record, recorded_answer *a);

/* Compiles the form of the answer, if it has one, for the model that answers again. */
TERN_MUST_CHECK tern_status recorded_answer_open_form(const tern_model *model, recorded_answer *a,
                                                      tern_error *err);

/* Opens an empty session with the recorded type of cache, and positions for the prompt and n more
 * tokens, but no more than the recorded context. Batch and threads are those of the options. */
TERN_MUST_CHECK tern_status recorded_answer_session(const recorded_answer *a, size_t n,
                                                    const tern_model *model, const options *o,
                                                    tern_session **out, tern_error *err);

/* The recorded type of the cache. */
tern_format recorded_answer_cache(const json_t *record);

void recorded_answer_close(recorded_answer *a);

/* Opens a model with what the document says of how files are read, and with the instruction set,
 * layout, threads and places of the options. `document` is the path of the document. */
TERN_MUST_CHECK tern_status recorded_model_open(const json_t *record, const char *document,
                                                const char *path, const options *o,
                                                tern_model **out, tern_error *err);

#endif
