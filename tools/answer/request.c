/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/answer/request.h"
#include "tools/prompt/prompt.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/output.h"

/* A decimal id, or a text that is one token of the model; -1 after a complaint. */
static int32_t bias_token(const loaded *l, const char *text, size_t size) {
    char *end;
    errno = 0;
    const long id = size > 0 && isdigit((unsigned char)*text) ? strtol(text, &end, 10) : -1;
    if (id >= 0 && end == text + size && errno == 0 && id < (long)l->info.n_vocab)
        return (int32_t)id;
    if (id >= 0 && end == text + size) {
        complain("--logit-bias: the model has no token %.*s, only %u of them", (int)size, text,
                 l->info.n_vocab);
        return -1;
    }
    if (l->tokenizer == NULL) {
        complain("%s; give --logit-bias the id of a token", l->tokenizer_error.message);
        return -1;
    }
    int32_t token = -1;
    size_t n = 0;
    tern_error err = {0};
    if (tern_tokenize(l->tokenizer, text, size, 0, NULL, 0, &n, &err) != TERN_OK ||
        (n == 1 && tern_tokenize(l->tokenizer, text, size, 0, &token, 1, &n, &err) != TERN_OK)) {
        (void)complain_error(&err);
        return -1;
    }
    if (n != 1)
        complain("--logit-bias: '%.*s' is %zu tokens of this model, not one", (int)size, text, n);
    return token;
}

/* Reads TOKEN=X. The last '=' separates, so TOKEN may contain others. */
static int read_bias(const loaded *l, const char *text, tern_logit_bias *bias) {
    const char *equals = strrchr(text, '=');
    char *end = NULL;
    const float x = equals != NULL ? strtof(equals + 1, &end) : 0.0F;
    if (equals == NULL || equals == text || end == equals + 1 || *end != '\0' || !isfinite(x)) {
        complain("--logit-bias wants TOKEN=X, such as 42=-100, not '%.100s'", text);
        return EXIT_USAGE;
    }
    *bias = (tern_logit_bias){bias_token(l, text, (size_t)(equals - text)), x};
    return bias->token >= 0 ? EXIT_DONE : EXIT_USAGE;
}

static int read_lists(const options *o, const loaded *l, answer_options *a) {
    tern_sampler_params *s = &a->sampling;
    tern_request *r = &a->request;
    s->n_bias = options_count(o, OPT_LOGIT_BIAS);
    r->n_stop_tokens = options_count(o, OPT_STOP_TOKEN);
    r->n_stop_texts = options_count(o, OPT_STOP);
    s->bias = a->bias = calloc(s->n_bias + 1, sizeof *a->bias);
    r->stop_tokens = a->stop_tokens = calloc(r->n_stop_tokens + 1, sizeof *a->stop_tokens);
    a->stop_texts = calloc(r->n_stop_texts + 1, sizeof *a->stop_texts);
    if (a->bias == NULL || a->stop_tokens == NULL || a->stop_texts == NULL) {
        complain("no memory for the options");
        return EXIT_FAILED;
    }
    for (size_t i = 0; i < s->n_bias; i++) {
        const int status = read_bias(l, options_nth(o, OPT_LOGIT_BIAS, i)->text, &a->bias[i]);
        if (status != EXIT_DONE)
            return status;
    }
    for (size_t i = 0; i < r->n_stop_tokens; i++) {
        const uint64_t id = options_nth(o, OPT_STOP_TOKEN, i)->integer;
        if (id >= l->info.n_vocab) {
            complain("--stop-token %" PRIu64 ": the vocabulary ends at %u", id,
                     l->info.n_vocab - 1);
            return EXIT_USAGE;
        }
        a->stop_tokens[i] = (int32_t)id;
    }
    for (size_t i = 0; i < r->n_stop_texts; i++) {
        a->stop_texts[i] = options_nth(o, OPT_STOP, i)->text;
        if (a->stop_texts[i][0] == '\0') {
            complain("--stop wants a text that is not empty");
            return EXIT_USAGE;
        }
    }
    r->n_stop_texts = l->tokenizer != NULL ? r->n_stop_texts : 0; /* no tokenizer: no text */
    r->stop_texts = a->stop_texts;
    return EXIT_DONE;
}

/* Drafts are off with a receipt, because it records passes and kernels, which must not vary between
 * runs. */
static tern_draft_mode draft_mode(const options *o) {
    const bool receipt = o->command == COMMAND_RUN && options_given(o, OPT_RECEIPT);
    return receipt || options_switch(o, OPT_NO_DRAFT) ? TERN_DRAFT_NEVER : TERN_DRAFT_WHERE_IT_PAYS;
}

int answer_options_read(const options *o, const loaded *l, answer_options *a) {
    *a = (answer_options){.sampling = tern_sampler_params_default()};
    tern_sampler_params *s = &a->sampling;
    const int status = sampling_read(o, l, o->command == COMMAND_CHAT, &a->chosen);
    if (status != EXIT_DONE)
        return status;
    sampling_apply(&a->chosen, s);
    s->seed = options_integer(o, OPT_SEED);
    const uint64_t most =
        options_integer(o, o->command == COMMAND_CHAT ? OPT_CHAT_TOKENS : OPT_MAX_TOKENS);
    a->request = (tern_request){.max_tokens = most,
                                .within_context = true,
                                .prompt_only = most == 0,
                                .ignore_end = options_switch(o, OPT_IGNORE_EOS),
                                .draft = draft_mode(o)};
    return read_lists(o, l, a);
}

void answer_options_free(answer_options *a) {
    free(a->bias);
    free(a->stop_tokens);
    free((void *)a->stop_texts);
    *a = (answer_options){0};
}

tern_request answer_options_request(const answer_options *a, const options *o, const prompt *p) {
    const bool echo = options_switch(o, OPT_ECHO) && !options_switch(o, OPT_JSON);
    tern_request request = a->request;
    request.tokens = p->ids;
    request.n_tokens = p->n;
    request.sampling = &a->sampling;
    request.no_digest = !options_switch(o, OPT_JSON);          /* it is not shown */
    request.drop_space = options_switch(o, OPT_CHAT) && !echo; /* an echoed prompt needs it */
    return request;
}
