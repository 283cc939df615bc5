/* SPDX-License-Identifier: Apache-2.0 */

/* The state of a request's branches in a grammar: the tokens that were read, and the stacks after
 * them. */

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "runtime/text/grammar/grammar.h"

enum {
    MANY_FRAMES = TERN_GRAMMAR_LIMIT(
        1 << 12), /* from here on a new pool is begun with what is still wanted */
    MOST_WORK = TERN_GRAMMAR_LIMIT(1 << 20) /* steps of one byte */
};

typedef struct cursor {
    tern_stacks stacks;
    uint32_t state;
    bool begun;
    int32_t *seen; /* the tokens that were read */
    size_t n_seen, capacity;
} cursor;

struct tern_grammar_state {
    tern_grammar *grammar;
    cursor *branches; /* [n_branches] */
    uint32_t n_branches;
    bool failed; /* the latest mask failed */
    tern_error error;
};

/* ---- reading --------------------------------------------------------------------------------- */

static tern_status fail(const tern_grammar *g, const tern_stacks *s, tern_error *err) {
    return tern_fail(err, s->status, "%s: %s", g->name, s->why);
}

static tern_status begin(const tern_grammar *g, tern_stacks *s, uint32_t *state, tern_error *err) {
    tern_stacks_free(s);
    if (tern_stacks_start(s, &g->program) != TERN_OK)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory", g->name);
    s->most_work = MOST_WORK;
    *state = tern_stacks_begin(s);
    return s->status == TERN_OK ? TERN_OK : fail(g, s, err);
}

/* Begins a new pool with what is still wanted, if this one has become large. */
static tern_status tidy(const tern_grammar *g, tern_stacks *s, uint32_t *state, tern_error *err) {
    if (s->n_frames < MANY_FRAMES && s->n_states < MANY_FRAMES && s->n_places < 4 * MANY_FRAMES)
        return TERN_OK;
    tern_stacks fresh;
    tern_status status = tern_stacks_start(&fresh, &g->program);
    if (status == TERN_OK) {
        *state = tern_stacks_copy(&fresh, s, *state, INT32_MAX);
        status = fresh.status;
    }
    if (status != TERN_OK) {
        tern_stacks_free(&fresh);
        return tern_fail(err, status, "%s: no memory", g->name);
    }
    tern_stacks_free(s);
    *s = fresh;
    return TERN_OK;
}

/* Reads bytes; *state is TERN_STACKS_NONE once the grammar does not allow them. */
static tern_status read(const tern_grammar *g, tern_stacks *s, uint32_t *state, const char *bytes,
                        size_t size, tern_error *err) {
    for (size_t i = 0; i < size && *state != TERN_STACKS_NONE; i++) {
        const tern_status status = tidy(g, s, state, err);
        if (status != TERN_OK)
            return status;
        s->most_work = s->work + MOST_WORK;
        *state = tern_stacks_after(s, *state, (uint8_t)bytes[i]);
        if (s->status != TERN_OK)
            return fail(g, s, err);
    }
    return TERN_OK;
}

tern_status tern_grammar_check(tern_grammar *grammar, const char *text, size_t size, bool *begins,
                               bool *whole, tern_error *err) {
    if (grammar == NULL || (text == NULL && size > 0) || begins == NULL || whole == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_grammar_check: NULL argument");
    tern_stacks s = {0};
    uint32_t state;
    tern_status status = begin(grammar, &s, &state, err);
    if (status == TERN_OK)
        status = read(grammar, &s, &state, text, size, err);
    if (status == TERN_OK) {
        *begins = state != TERN_STACKS_NONE;
        *whole = *begins && s.states[state].whole;
    }
    tern_stacks_free(&s);
    return status;
}

/* ---- branches -------------------------------------------------------------------------------- */

tern_status tern_grammar_state_new(tern_grammar *grammar, uint32_t branches,
                                   tern_grammar_state **out, tern_error *err) {
    if (grammar == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_grammar_state_new: NULL argument");
    const uint32_t n = branches > 0 ? branches : 1;
    tern_grammar_state *s = calloc(1, sizeof *s);
    cursor *cursors = calloc(n, sizeof *cursors);
    if (s == NULL || cursors == NULL) {
        free(s);
        free(cursors);
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for %u branches", grammar->name, n);
    }
    *s = (tern_grammar_state){
        .grammar = tern_grammar_share(grammar), .branches = cursors, .n_branches = n};
    *out = s;
    return TERN_OK;
}

void tern_grammar_state_free(tern_grammar_state **state) {
    if (state == NULL || *state == NULL)
        return;
    tern_grammar_state *s = *state;
    for (uint32_t i = 0; i < s->n_branches; i++) {
        tern_stacks_free(&s->branches[i].stacks);
        free(s->branches[i].seen);
    }
    free(s->branches);
    tern_grammar_free(&s->grammar);
    free(s);
    *state = NULL;
}

const tern_error *tern_grammar_state_error(const tern_grammar_state *state) {
    return state != NULL && state->failed ? &state->error : NULL;
}

/* Reads one token of an answer. */
static tern_status take(const tern_grammar *g, cursor *c, int32_t token, tern_error *err) {
    size_t size;
    const char *bytes = tern_token_bytes(g->tokens->tokenizer, token, false, &size);
    if (!tern_grow((void **)&c->seen, &c->capacity, c->n_seen, sizeof *c->seen, SIZE_MAX / 8))
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory", g->name);
    const tern_status status = read(g, &c->stacks, &c->state, bytes, size, err);
    if (status != TERN_OK)
        return status;
    if (size == 0 || c->state == TERN_STACKS_NONE)
        return tern_fail(err, TERN_ERR_GRAMMAR,
                         "%s: token %d, number %zu of the answer, does not "
                         "follow",
                         g->name, token, c->n_seen + 1);
    c->seen[c->n_seen++] = token;
    return TERN_OK;
}

/* Brings a branch up to its progress. */
static tern_status follow(const tern_grammar *g, cursor *c, const tern_progress *p,
                          tern_error *err) {
    const int32_t *answer = p->tokens + p->n_prompt;
    const size_t n = p->n - p->n_prompt;
    const bool goes_on =
        c->begun && c->n_seen <= n &&
        (c->n_seen == 0 || memcmp(answer, c->seen, c->n_seen * sizeof *answer) == 0);
    tern_status status = TERN_OK;
    if (!goes_on) {
        c->n_seen = 0;
        status = begin(g, &c->stacks, &c->state, err);
    }
    while (c->n_seen < n && status == TERN_OK)
        status = take(g, c, answer[c->n_seen], err);
    c->begun = status == TERN_OK;
    return status;
}

static tern_status follow_branch(tern_grammar_state *s, const tern_progress *p, cursor **c,
                                 tern_error *err) {
    if (p->branch >= s->n_branches || p->n < p->n_prompt)
        return tern_fail(err, TERN_ERR_ARG, "%s: branch %u of %u, %zu tokens after %zu",
                         s->grammar->name, p->branch, s->n_branches, p->n, p->n_prompt);
    *c = &s->branches[p->branch];
    return follow(s->grammar, *c, p, err);
}

bool tern_grammar_mask(void *user, const tern_progress *progress, uint64_t *allowed, size_t words) {
    tern_grammar_state *s = user;
    cursor *c;
    bool any = false;
    const char *why = "";
    tern_status status = follow_branch(s, progress, &c, &s->error);
    s->failed = status != TERN_OK;
    if (s->failed)
        return false;
    status = tern_grammar_apply(s->grammar, &c->stacks, c->state, allowed, words, &any, &why);
    if (status != TERN_OK)
        (void)tern_fail(&s->error, status, "%s: %s", s->grammar->name, why);
    else if (!any)
        (void)tern_fail(&s->error, TERN_ERR_GRAMMAR,
                        "%s: no token of the model can go on after token %zu of the answer",
                        s->grammar->name, c->n_seen);
    s->failed = !any;
    return any;
}

tern_status tern_grammar_follow(tern_grammar_state *state, const tern_progress *progress,
                                bool *whole, tern_error *err) {
    if (state == NULL || progress == NULL || whole == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_grammar_follow: NULL argument");
    cursor *c;
    const tern_status status = follow_branch(state, progress, &c, err);
    if (status == TERN_OK)
        *whole = c->stacks.states[c->state].whole;
    return status;
}
