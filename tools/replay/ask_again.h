/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_REPLAY_ASK_AGAIN_H
#define TERN_TOOLS_REPLAY_ASK_AGAIN_H

/*
 * Asks a recorded answer again: of the model that gave it, or of another one with the same
 * vocabulary. Finds the first difference, and what the two models think of both tokens there.
 */

#include <limits.h>

#include "tools/replay/recorded_answer.h"

/* A model that stays open for the next answer, if that is of the same file, read in the same way.
 */
typedef struct kept_model {
    char path[PATH_MAX];
    json_t *reading; /* how the file is read; NULL: nothing is open */
    tern_model *model;
    const tern_tokenizer *tokenizer;
} kept_model;

/* Zero it but for the first two members; free it in any case. */
typedef struct again {
    const options *o;
    const char *document; /* path of the recording */
    kept_model now;       /* answers: -m, or the recorded one */
    kept_model then;      /* the recorded one, if -m is another */
} again;

typedef struct again_answer {
    rerun_result first; /* RERUN_SAME: equal */
    bool same_model;    /* by its fingerprint: hidden states were compared, too */
    /* For the recorded token and the one that is picked now, by the recorded model and by this
     * one: logarithms of their probabilities before biases, penalties and masks. NAN: not known,
     * since an answer is over there or the recorded model was not found. */
    double then[2], now[2];
} again_answer;

/* Opens the model that answers, the file `path`, checks that it reads the recorded ids as the same
 * texts, and prepares the answer (its form, too). *a must be read. Errors name the file. */
TERN_MUST_CHECK tern_status again_open(again *g, recorded_answer *a, const char *path,
                                       tern_error *err);

/* Does the same, asks, and compares. */
TERN_MUST_CHECK tern_status again_ask(again *g, recorded_answer *a, const char *path,
                                      again_answer *out, tern_error *err);

void again_free(again *g);

#endif
