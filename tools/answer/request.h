/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_ANSWER_REQUEST_H
#define TERN_TOOLS_ANSWER_REQUEST_H

/* Turns options into requests, for all commands that answer. */

#include "tern/engine.h"
#include "tools/answer/sampling.h"
#include "tools/load/loader.h"
#include "tools/prompt/prompt.h"

/* The options about sampling and ends; owns the lists that both point to. */
typedef struct answer_options {
    sampling chosen; /* the values of `sampling`, and their sources */
    tern_sampler_params sampling;
    tern_request request; /* all except the prompt, sampling, drop_space and hooks */
    tern_logit_bias *bias;
    int32_t *stop_tokens;
    const char **stop_texts;
} answer_options;

/* EXIT_DONE, or the exit status after a complaint. Free it in any case. */
int answer_options_read(const options *o, const loaded *l, answer_options *a);
void answer_options_free(answer_options *a);

/* The request for a prompt. It may use the engine's whole context. *a must outlive it. */
tern_request answer_options_request(const answer_options *a, const options *o, const prompt *p);

#endif
