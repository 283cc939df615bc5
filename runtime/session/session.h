/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_SESSION_SESSION_H
#define TERN_RUNTIME_SESSION_SESSION_H

/* What a tern_session is made of: the cache, scratch for one batch, the thread team. */

#include "base/arena.h"
#include "runtime/model/model.h"
#include "runtime/forward/attention.h"
#include "runtime/forward/overflow.h"
#include "runtime/forward/stages.h"
#include "runtime/threads/team.h"
#include "tern/tern.h"

/* The residual stream of some tokens, and what the next matrices read of them. */
typedef struct tern_inputs {
    float *x;        /* [T][n_embd]               residual stream */
    float *norm;     /* [T][width]                input of the next matrices */
    int8_t *qx;      /* [T][q_stride]             the same, quantized with one scale a token */
    float *qx_s;     /* [T] */
    int32_t *qx_sum; /* [T] */
    int8_t *bx;      /* [T][q_stride]             the same, quantized with one scale a block */
    float *bx_d;     /* [T][blocks] */
    int32_t *bx_sum; /* [T][blocks] */
} tern_inputs;

/* Scratch for a batch of up to n_batch tokens; T stands for the tokens of the running batch. */
typedef struct tern_scratch {
    tern_inputs in;
    tern_inputs *own;     /* [threads - 1] of one token each, for all workers but the first */
    float *attended;      /* [T][n_head * head_dim]   what attention gives */
    float *q;             /* [T][n_head * head_dim] */
    float *k, *v;         /* [T][n_head_kv * head_dim] */
    float *gate;          /* [T][n_ff] */
    float *up;            /* [T][n_ff] */
    float *out;           /* [T][n_embd]               what is added to the residual stream */
    float *cosine;        /* [T][n_rot / 2] */
    float *sine;          /* [T][n_rot / 2] */
    float *attend;        /* [threads][attend_stride] */
    float *logits;        /* [n_vocab] */
    float *lower, *upper; /* [n_vocab] bounds of logits; NULL when the head has no image */
    size_t width;         /* widest matrix input, columns */
    size_t q_stride;      /* width rounded up to TERN_Q_PAD */
    size_t blocks;        /* ceil(width / TERN_BLOCK) */
    size_t attend_stride;

    /* Of heads that several workers share, none of which is there with one thread. */
    float *states;             /* [n_head_kv][chunks of n_ctx][TERN_ATTEND_TOKENS][group][state] */
    size_t states_stride;      /* floats of a key/value head */
    tern_attend_share *shares; /* [n_head_kv] */
} tern_scratch;

/* What is known of the token that was evaluated last. */
typedef enum tern_last_state {
    TERN_LAST_NONE,   /* there is none, or the session was changed behind it */
    TERN_LAST_HIDDEN, /* its row of scratch.in */
    TERN_LAST_LOGITS  /* that, and scratch.logits */
} tern_last_state;

typedef struct tern_last {
    tern_last_state state;
    size_t row;   /* of scratch.in */
    bool counted; /* its head is in work.products */
} tern_last;

struct tern_session {
    const tern_model *model;
    tern_team *team;
    tern_arena cache_arena;   /* keys, values, tokens */
    tern_arena scratch_arena; /* everything else */
    tern_scratch scratch;
    tern_format kv;
    const tern_kernel_row *attend;
    const tern_kernel_row *store;
    uint8_t *cache_k; /* [n_layer][n_head_kv][n_ctx] rows of head_dim elements of kv */
    uint8_t *cache_v;
    int32_t *tokens;     /* [n_ctx], of which position are there */
    size_t kv_row_bytes; /* of a position and head */
    float attend_scale;  /* 1 / sqrt(head_dim) */
    uint32_t n_ctx;
    uint32_t n_batch;
    uint32_t position; /* tokens in the cache */
    tern_last last;
    int refused; /* errno of the first binding that the system refused; 0: none */
    tern_session_work work;
    unsigned ran;                    /* bits of tern_products */
    tern_product_observer *observer; /* NULL: nobody looks */
    void *observer_user;
    tern_stages *stages; /* of as many workers as the team has; NULL: nobody measures */
};

/* Which products a session has made: of one token (gemv) or several (gemm), in the blocks or in the
 * head. */
enum tern_products {
    TERN_RAN_GEMV = 1,
    TERN_RAN_GEMM = 2,
    TERN_RAN_HEAD_GEMV = 4,
    TERN_RAN_HEAD_GEMM = 8,
    TERN_RAN_HEAD_SCAN = 16,
    TERN_RAN_ALL = 31
};

/*
 * Whether n tokens can be appended behind the first `position` ones of the session: TERN_ERR_EMPTY,
 * TERN_ERR_CONTEXT (more tokens than the context), TERN_ERR_FULL (no room behind `position`),
 * TERN_ERR_TOKEN_RANGE.
 */
TERN_MUST_CHECK tern_status tern_session_check(const tern_session *s, const int32_t *tokens,
                                               size_t n, uint32_t position, tern_error *err);

/* TERN_ERR_NONFINITE, naming the token, when one of logits[rows][n_vocab] is not finite. */
TERN_MUST_CHECK tern_status tern_check_logits(const float *logits, size_t rows, size_t n_vocab,
                                              tern_error *err);

/* What a linear map reads from token t0 on. */
static inline tern_activations tern_activations_of(const tern_scratch *s, const tern_inputs *in,
                                                   const tern_linear *linear, size_t t0) {
    const bool token = linear->form == TERN_INPUT_TOKEN;
    return (tern_activations){.cols = linear->matrix.cols,
                              .x = in->norm + t0 * s->width,
                              .x_stride = s->width,
                              .q = (token ? in->qx : in->bx) + t0 * s->q_stride,
                              .q_stride = s->q_stride,
                              .s = in->qx_s + t0,
                              .sum = in->qx_sum + t0,
                              .d = in->bx_d + t0 * s->blocks,
                              .block_sum = in->bx_sum + t0 * s->blocks,
                              .d_stride = s->blocks};
}

/* Changes where the sequence ends; what was known of its last token is not true any more. */
static inline void tern_session_move(tern_session *s, uint32_t position) {
    s->position = position;
    s->last.state = TERN_LAST_NONE;
}

/* One pass over a batch; forward.c. */
typedef struct tern_batch {
    tern_session *session;
    const int32_t *tokens; /* [n]; NULL: rows */
    const float *rows;     /* [n][n_embd] in place of the embedding's rows of tokens */
    size_t n;              /* 1 .. n_batch */
    size_t position;       /* of tokens[0] */
    size_t n_logits;       /* the last n_logits tokens get logits: 0 .. n */
    float *logits;         /* [n_logits][n_vocab] */
    tern_overflow overflow;
} tern_batch;

/*
 * Writes the batch's keys and values behind position and the logits asked for. batch->overflow says
 * where numbers overflowed; the logits, which may do so too, are the caller's to check.
 */
void tern_forward(tern_batch *batch);

/* Start of K or V of a layer and head in a cache. */
static inline uint8_t *tern_cache_head(const tern_session *s, uint8_t *cache, size_t layer,
                                       size_t head) {
    const tern_config *c = &s->model->config;
    return cache + (layer * c->n_head_kv + head) * s->n_ctx * s->kv_row_bytes;
}

#endif
