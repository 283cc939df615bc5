/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_ANSWER_REQUEST_H
#define TERN_TOOLS_ANSWER_REQUEST_H

/* From options to how is answered, for all commands that answer. */

#include "tools/answer/answerer.h"
#include "tools/answer/sampling.h"
#include "tools/model/loader.h"

/* What the options say of sampling and of ends; owns the lists that both point at. */
typedef struct answer_options {
    sampling chosen; /* what is in `sampling`, with its sources */
    tern_sampler_params sampling;
    answer_request request; /* all but the prompt, drop_space and the sink */
    tern_logit_bias *bias;
    int32_t *stop_tokens;
    const char **stop_texts;
} answer_options;

/* EXIT_DONE, or the exit status after a complaint. Free in any case. */
int answer_options_read(const options *o, const loaded *l, answer_options *a);
void answer_options_free(answer_options *a);

/* The request for a prompt, its text to be given to the sink. */
answer_request answer_options_request(const answer_options *a, const options *o, const prompt *p,
                                      answer_sink *sink, void *user);

#endif
