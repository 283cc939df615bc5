/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_ANSWER_REQUEST_H
#define TERN_TOOLS_ANSWER_REQUEST_H

/* From options to how is answered, for all commands that answer. */

#include "tern/engine.h"
#include "tools/answer/sampling.h"
#include "tools/model/loader.h"

/* What the options say of sampling and of ends; owns the lists that both point at. */
typedef struct answer_options {
    sampling chosen; /* what is in `sampling`, with its sources */
    tern_sampler_params sampling;
    tern_request request; /* all but the prompt, sampling, drop_space and hooks */
    tern_logit_bias *bias;
    int32_t *stop_tokens;
    const char **stop_texts;
} answer_options;

/* EXIT_DONE, or the exit status after a complaint. Free in any case. */
int answer_options_read(const options *o, const loaded *l, answer_options *a);
void answer_options_free(answer_options *a);

/* The request for a prompt, to an engine's context; *a must outlive it. */
tern_request answer_options_request(const answer_options *a, const options *o, const prompt *p);

#endif
