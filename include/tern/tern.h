/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TERN_H
#define TERN_TERN_H

/*
 * tern: models, sessions, text.
 *
 * A tern_model is immutable once it is open and may be shared by threads. A tern_session owns what
 * changes (key/value cache, scratch, threads) and belongs to one caller at a time. Results are the
 * same bits for every instruction set, thread count and split of the prompt (docs/numerics.md).
 *
 * Functions that can fail return a tern_status and leave their out-parameters untouched when they
 * do; `err` may be NULL everywhere. Strings are UTF-8. Nothing prints, nothing exits.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/adapter.h"
#include "tern/dedup.h"
#include "tern/end.h"
#include "tern/kernels.h"
#include "tern/status.h"
#include "tern/tokenizer.h"
#include "tern/topology.h"

TERN_API_BEGIN

typedef struct tern_model tern_model;
typedef struct tern_sampler tern_sampler;
typedef struct tern_session tern_session;

/* ---- model --------------------------------------------------------------------------------- */

/* Which packed weights are kept in the cache folder, and taken from there. */
typedef enum tern_image_use {
    TERN_IMAGES_LARGE, /* of 64 MiB and more: packing less takes no time that could be noticed */
    TERN_IMAGES_ALL,
    TERN_IMAGES_NONE
} tern_image_use;

typedef struct tern_model_params {
    const char *isa;     /* name of the kernel table; NULL: TERN_ISA, else the best here */
    const char *disable; /* instruction sets not to use: "avx512vbmi,avx512"; NULL: TERN_DISABLE */
    const char *layout;  /* packed layout of ternary matrices: "t2r16", "t5r16", ...; NULL: the
                            tuner's choice, else "t2r16" */
    tern_i2s_order i2s_order;  /* of the codes in I2_S tensors, which no file tells */
    const char *i2s_map;       /* their meaning: weights of codes 0 to 3, such as "0,1,-1,x" (x: no
                                  weight), or a name of docs/formats.md; NULL: "-1,0,1,x", and
                                  tern_model_doubt says when that is improbable */
    const char *tl_tiles;      /* tile sizes of TL1 and TL2 tensors, which no file tells:
                                  "256x128x32" or "1536x4096=256x128x32,..."; NULL: those that are
                                  known for the shapes */
    const char *pre_tokenizer; /* overrides tokenizer.ggml.pre; NULL: what the file says */
    const char *tokenizer;     /* file as in tern_tokenizer_open in place of the model's own; NULL:
                                  its own, or else a tokenizer.json in the same folder */
    const char *chat_format; /* name or path as in tern_tokenizer_set_chat_format; NULL: the file's
                                own */
    uint32_t threads;          /* used while loading; 0: tern_topology_threads */
    tern_places places;        /* of the weights, and of the threads and memory of every session */
    tern_fetch fetch;          /* what threads ask memory for ahead. Changes no bit */
    bool replicate;            /* a copy of hot weights on every NUMA node that threads are bound
                                  to (docs/threads.md); nothing on a machine of one node */
    uint64_t replicate_limit;  /* bytes of each copy; 0: as many as there are */
    const char *cache;         /* folder for what could be made again: packed weights
                                  (docs/cache.md), measurements; NULL: nothing is kept */
    uint64_t cache_limit;      /* bytes of all packed weights in it together; 0: 8 GiB */
    tern_image_use images;     /* which of them; a matter of time, never of results */
    bool tune;                 /* use the kernels and layouts that measure best on this machine:
                                  measured once, kept in `cache` (docs/tuning.md), as are the speeds
                                  of kinds of cores. Changes no bit */
    bool tune_later;           /* with `tune`: opening measures no kernels, only what decides the
                                  layout, so the first token waits for nothing else. The rest is up
                                  to tern_model_tune (tern/tune.h), for models opened after it */
    uint32_t together;         /* sequences that may be decoded at once; with `tune` it decides the
                                  layout too (docs/tuning.md). Changes no bit, and is no limit */
    bool no_weights;           /* only metadata, plan and tokenizer (inspect); cannot be run */
    bool strict;               /* refuse whatever would stand in for what is missing */
    bool exact_head;           /* read all of a float head for every token: no int8 image of it */
    const char *activations;   /* their precision (docs/numerics.md): "int8", "fp8", "fp8-e5m2",
                                  "fp16", "bf16", "fp32"; NULL or "auto": the model's own */
    bool activations_hint;     /* is a hint: the own one where it cannot be, also with `strict` */
    tern_dedup_params dedup;   /* tensors that are made of shared bytes; changes no bit */
    bool no_sidecar;    /* leave sparse layers beside a GGUF file alone (tern_gguf_add_sidecar) */
    bool long_context;  /* longrope's factors for the file's whole context, at every length;
                           TERN_ERR_CONTEXT where it has none */
    const char *device; /* where passes run: "cpu" or NULL, "cuda", "auto" (docs/cuda.md). Changes
                           no bit; on a device nothing is tuned, and sessions have one thread */
    tern_model *share;  /* an open model: equal matrices are read where it, or any that shares with
                           it, has them; each may be freed first. NULL: none. Changes no bit */
    struct tern_ranks *ranks; /* processes that compute the model together (tern/ranks.h); NULL:
                                 this one alone. They must outlive the model. Changes no bit */
    const tern_adapter_file *adapters; /* [n_adapters] of which answers may use some; copied. The
                                          device must be the processor, or "auto" */
    size_t n_adapters;
} tern_model_params;

tern_model_params tern_model_params_default(void);

/*
 * Opens and checks a GGUF model, maps it and packs its weights for this machine. A strict model,
 * and every session of it, does what was asked for or fails with TERN_ERR_STRICT: no scalar kernel
 * in place of a faster one, no float matrix in a block, no guessed metadata (docs/strict.md).
 */
TERN_MUST_CHECK tern_status tern_model_open(const char *path, const tern_model_params *params,
                                            tern_model **out, tern_error *err);

/* The machine that the model was loaded for, owned by it. */
const tern_topology *tern_model_topology(const tern_model *model);

/*
 * Frees *model and sets it to NULL. Sessions of it must have been freed. NULL is fine. Matrices
 * that other models read (tern_model_params.share) stay in memory as long as one of those.
 */
void tern_model_free(tern_model **model);

/* The tensors that are made of shared bytes; the problem is owned by the model. */
tern_dedup_info tern_model_dedup(const tern_model *model);

typedef struct tern_model_info {
    const char *path, *architecture, *name; /* owned by the model; name may be "" */
    uint32_t n_layer, n_embd, n_ff, n_head, n_head_kv, head_dim, n_vocab, n_ctx_train;
    uint32_t n_expert, n_expert_used; /* 0: none; else n_ff is the width of each */
    uint64_t file_bytes;              /* of the model file */
    uint64_t weight_bytes;  /* read for one decoded token: every matrix once, head included; of
                               experts those that it takes */
    uint64_t packed_bytes;  /* memory that packed matrices take */
    uint32_t replicas;      /* copies of hot weights, one a node; 0: none */
    uint64_t replica_bytes; /* memory of each */
    uint64_t equal_bytes;   /* of matrices that take no memory, because equal ones do, of this model
                               or of the one that it shares with */
    uint64_t parameters;    /* weights of all tensors */
    uint64_t attention_bytes, feed_forward_bytes, head_bytes; /* what weight_bytes is the sum of */
    uint64_t block_weights; /* multiplied for every token: of the matrices in all blocks */
    uint64_t head_weights;  /* multiplied for every token that gets logits */
} tern_model_info;

void tern_model_describe(const tern_model *model, tern_model_info *out);

/* The time that opening a model took, in seconds of the wall clock, and the use of the cache. */
typedef struct tern_model_loading {
    double seconds;         /* tern_model_open, all of it */
    double content_seconds; /* to know which weights the file holds */
    double image_seconds;   /* to map and verify packed weights from the cache */
    double weights_seconds; /* to pack the weights, or to find them in what is mapped, and to check
                               the kernels on them */
    uint64_t compared_bytes; /* that were read to find equal matrices, beside a few of each */
    bool mapped;            /* packed weights came from the cache */
    tern_error problem;     /* status other than TERN_OK: why the cache could not be used */
    tern_error replica_problem; /* status other than TERN_OK: why a node has no replica, which
                                   makes it slower and changes no bit */
} tern_model_loading;

void tern_model_describe_loading(const tern_model *model, tern_model_loading *out);

/*
 * Bytes of n_ctx positions in the key/value cache: 2 * layers * kv heads * n_ctx * bytes of a row:
 * head_dim * 4 (F32), head_dim * 2 (F16), ceil(head_dim / 32) * 34 (Q8_0). A session takes whole
 * pages of TERN_ATTEND_CHUNK positions. 0 when a session cannot have kv.
 */
uint64_t tern_model_kv_bytes(const tern_model *model, uint32_t n_ctx, tern_format kv);

/* Kernels that sessions with a cache of format kv use, without duplicates, in the order of the
 * forward pass. Writes at most capacity, returns how many there are. */
size_t tern_model_kernels(const tern_model *model, tern_format kv, const tern_kernel_row **rows,
                          size_t capacity);

/*
 * Keys and tensors of the file that tern does not know and did not use, printable: "key llama.foo",
 * "tensor bar.weight" (docs/strict.md). Normally nothing; of a strict model never anything. Sets
 * *names to an array owned by the model, returns how many there are.
 */
size_t tern_model_unused(const tern_model *model, const char *const **names);

/*
 * One line that says why the codes of the model's I2_S tensors probably mean other weights. NULL
 * when there is no doubt, or when tern_model_params.i2s_map said what they mean. A strict model
 * never has a doubt. docs/formats.md has the rule.
 */
const char *tern_model_doubt(const tern_model *model);

/*
 * The precision of activations in use: "auto" for the model's own, also where another one was asked
 * for that changes nothing or that the weights do not allow, else its name. Static storage.
 */
const char *tern_model_activations(const tern_model *model);

/* The activations that products read: "int8" (one scale a token), "int8 blocks" (one for 32
 * columns), "float", or several of these, in the precision in use. Static storage. */
const char *tern_model_activation_forms(const tern_model *model);

/* One line that says why the precision that was asked for is not in use: ternary weights have int8
 * in their definition, or a hint cannot be followed. NULL: it is in use. Lives with the model. */
const char *tern_model_activations_note(const tern_model *model);

/*
 * Kernels that were refused while the model was loaded: on its weights (or on made-up input) they
 * gave other bits than the scalar ones. A sound kernel replaced each of them. Normally none. Sets
 * *refusals to an array owned by the model, returns how many there are.
 */
size_t tern_model_refusals(const tern_model *model, const tern_kernel_refusal **refusals);

/*
 * TERN_ERR_CHANGED when one of the model's files was written to since it was opened. Some weights
 * are read where files are mapped, so what was computed since then means nothing. tern_model_open
 * asks this itself when all is loaded, tern_generate and engines when an answer ends.
 * TERN_ERR_RANKS where another rank was lost (tern/ranks.h).
 */
TERN_MUST_CHECK tern_status tern_model_unchanged(const tern_model *model, tern_error *err);

/*
 * A number that two models share only if they compute the same: made from every weight, the
 * metadata that the forward pass reads (not name, tokenizer, chat format), and the adapters that
 * are in use where a request names none. Reads the whole file once, at the speed of memory, when it
 * is first asked for. Equal numbers by accident: 1 in 2^64.
 */
uint64_t tern_model_identity(const tern_model *model);

/*
 * Grows by one whenever a release computes other bits for the same model and cache format
 * (docs/numerics.md): models of equal identity, format and version give equal answers everywhere.
 */
enum { TERN_NUMERICS_VERSION = 2 };

/* Name of the instruction set that the model was opened for ("avx2"), static storage. */
const char *tern_model_isa(const tern_model *model);

/*
 * The origin of the choice of layouts and of kernels for matrices: "table", the table's order of
 * preference; "tuned", measurements; "asked", tern_model_params.layout. Static storage.
 */
const char *tern_model_choice(const tern_model *model);

/* The packed layout of the ternary matrices, "mixed" where the tuner chose several; of a model
 * without any the one that they would have. Static storage. */
const char *tern_model_layout(const tern_model *model);

/* The model's tokenizer, owned by the model; TERN_ERR_TOKENIZER_MISSING etc. when it has none. */
TERN_MUST_CHECK tern_status tern_model_tokenizer(const tern_model *model,
                                                 const tern_tokenizer **out, tern_error *err);

/* ---- session ------------------------------------------------------------------------------- */

/* Positions of a session that asks for none: what the model was trained for, at most 4096. */
uint32_t tern_model_default_context(const tern_model *model);

typedef struct tern_session_params {
    uint32_t n_ctx;   /* positions; 0: tern_model_default_context */
    uint32_t n_batch; /* tokens handled in one pass; 0: 128, on a device 512. Changes no bit */
    uint32_t threads; /* 0: as many as tern_topology_threads says. Never changes a result */
    tern_format kv;   /* TERN_FORMAT_F16 (default), TERN_FORMAT_F32 or TERN_FORMAT_Q8_0 */
    bool keep_all;    /* layers with a window keep all positions, too, not only those that a token
                         may still see: tern_session_kv has them, and going back costs nothing */
} tern_session_params;

tern_session_params tern_session_params_default(void);

TERN_MUST_CHECK tern_status tern_session_new(const tern_model *model,
                                             const tern_session_params *params, tern_session **out,
                                             tern_error *err);
void tern_session_free(tern_session **session);

/*
 * Bytes of memory that a session with these parameters takes, cache and scratch together; also for
 * a model that was opened without its weights. Errors as tern_session_new.
 */
TERN_MUST_CHECK tern_status tern_session_bytes(const tern_model *model,
                                               const tern_session_params *params, uint64_t *bytes,
                                               tern_error *err);

/* The part of it that is cache: so many layers keep so many positions, in whole pages. */
typedef struct tern_session_cache_size {
    uint32_t layers, positions;
    uint32_t window_layers, window_positions; /* of those that keep fewer; 0: there are none */
    uint64_t bytes;                           /* of all of them */
} tern_session_cache_size;

/* The same way, with the same errors. */
TERN_MUST_CHECK tern_status tern_session_cache_bytes(const tern_model *model,
                                                     const tern_session_params *params,
                                                     tern_session_cache_size *size,
                                                     tern_error *err);

const tern_model *tern_session_model(const tern_session *s); /* that it was made for */
uint32_t tern_session_position(const tern_session *s);       /* tokens in the cache */
uint32_t tern_session_context(const tern_session *s);        /* capacity in positions */
tern_format tern_session_cache(const tern_session *s);       /* format of keys and values */
uint32_t tern_session_threads(const tern_session *s);        /* fewer than asked for where the
                                                                system starts no more */
int tern_session_refused(const tern_session *s);             /* errno of the first binding of a
                                                                thread or of memory, the model's
                                                                too, that the system refused; 0 */
uint32_t tern_session_batch(const tern_session *s); /* tokens handled in one pass, at most */

/*
 * Forgets the positions from `position` on; TERN_ERR_POSITION if there are fewer.
 *
 * Layers with a window keep pages only as far as it reaches (but with keep_all). Going back by
 * tern_session_batch positions and a page is free. Where a window needs what is not there any more,
 * the tokens before `position` are computed again, with the same bits; that is TERN_ERR_STATE, and
 * nothing changes, where one of them came from a row.
 */
TERN_MUST_CHECK tern_status tern_session_rewind(tern_session *s, uint32_t position,
                                                tern_error *err);

typedef enum tern_logits_mode {
    TERN_LOGITS_NONE, /* none now: tern_session_pick and tern_session_last_logits may follow */
    TERN_LOGITS_LAST, /* logits[n_vocab] of the last token */
    TERN_LOGITS_ALL   /* logits[n][n_vocab] */
} tern_logits_mode;

/*
 * Appends n tokens to the sequence and computes logits into `logits` (64-byte aligned, see
 * tern_session_logits for a buffer of the session's own). On any error nothing was appended. (A
 * sequence with rows in it is empty then, if the attempt overwrote what its windows need.)
 * Errors: TERN_ERR_NULL, TERN_ERR_EMPTY (n == 0), TERN_ERR_TOKEN_RANGE, TERN_ERR_CONTEXT,
 * TERN_ERR_FULL, TERN_ERR_UNALIGNED, TERN_ERR_NONFINITE.
 */
TERN_MUST_CHECK tern_status tern_session_eval(tern_session *s, const int32_t *tokens, size_t n,
                                              tern_logits_mode mode, float *logits,
                                              tern_error *err);

/*
 * The same at a position that the caller chooses: what the sequence had from there on is forgotten.
 * TERN_ERR_POSITION when the sequence does not reach that far, TERN_ERR_FULL when the context does
 * not. At position 0 everything is computed anew, from nothing that the cache held.
 */
TERN_MUST_CHECK tern_status tern_session_eval_at(tern_session *s, uint32_t position,
                                                 const int32_t *tokens, size_t n,
                                                 tern_logits_mode mode, float *logits,
                                                 tern_error *err);

/*
 * Appends n positions whose embeddings the caller brings, rows[n][n_embd] (tern_model_describe), in
 * place of tokens: soft prompts, other models' outputs. Rows of tern_model_embed give the bits that
 * their tokens give. tern_session_tokens has TERN_NO_TOKEN there, which no token equals, and such a
 * session cannot be saved (TERN_ERR_STATE). TERN_ERR_NONFINITE when a number of a row is not
 * finite, other errors as above.
 */
TERN_MUST_CHECK tern_status tern_session_eval_rows(tern_session *s, const float *rows, size_t n,
                                                   tern_logits_mode mode, float *logits,
                                                   tern_error *err);

enum { TERN_NO_TOKEN = -1 };

/* The embedding of a token, row[n_embd]. Errors: TERN_ERR_NULL, TERN_ERR_TOKEN_RANGE,
 * TERN_ERR_STATE (a model opened without its weights). */
TERN_MUST_CHECK tern_status tern_model_embed(const tern_model *model, int32_t token, float *row,
                                             tern_error *err);

/* A buffer of n_vocab floats owned by the session, for LAST. */
float *tern_session_logits(tern_session *s);

/*
 * The logits of the token that was evaluated last, valid until the session is changed again;
 * TERN_ERR_STATE when there is none, TERN_ERR_NONFINITE.
 *
 * last_logits: its logits, [n_vocab] in the buffer of tern_session_logits. They are computed when
 * they are not there yet.
 *
 * pick: the token that tern_sampler_pick picks from these logits, which are not computed where they
 * need not be. A float head is scanned in int8, within proven bounds, and only the rows that could
 * still matter are multiplied exactly (docs/architecture.md). Sampling from all tokens, without
 * top-k, top-p and min-p, needs all logits, as does what the bounds leave open.
 */
TERN_MUST_CHECK tern_status tern_session_last_logits(tern_session *s, const float **logits,
                                                     tern_error *err);
TERN_MUST_CHECK tern_status tern_session_pick(tern_session *s, tern_sampler *sampler,
                                              int32_t *token, tern_error *err);

/* The tokens in the cache: [tern_session_position(s)], the session's, until its next call. */
const int32_t *tern_session_tokens(const tern_session *s);

/*
 * Not computing twice. A session knows its tokens; where a new sequence begins like the one in the
 * cache, only the rest has to be evaluated, with the same bits as if all had been.
 *
 * common_prefix: how many tokens the session's sequence and `tokens` share at their beginning.
 *
 * reuse: rewinds the session to the common prefix, at most n - 1, so that at least one token is
 * left to be evaluated for its logits. Where layers with a window do not have any more what this
 * position needs (tern_session_rewind), it rewinds to 0. *reused is how many were kept: evaluate
 * tokens + *reused, or give them to tern_generate. Refuses what tern_session_eval would refuse
 * (TERN_ERR_EMPTY, TERN_ERR_CONTEXT when n exceeds the context, TERN_ERR_TOKEN_RANGE) and then
 * changes nothing.
 *
 * sync: reuse, then evaluates the rest: afterwards the session holds exactly `tokens`. logits, for
 * the last token, and reused may be NULL. When evaluation fails the session holds what was reused.
 */
size_t tern_session_common_prefix(const tern_session *s, const int32_t *tokens, size_t n);
TERN_MUST_CHECK tern_status tern_session_reuse(tern_session *s, const int32_t *tokens, size_t n,
                                               size_t *reused, tern_error *err);
TERN_MUST_CHECK tern_status tern_session_sync(tern_session *s, const int32_t *tokens, size_t n,
                                              float *logits, size_t *reused, tern_error *err);

/*
 * Sessions as files (docs/sessions.md). save writes tokens, keys and values, and replaces what is
 * at its path when all is written: a full disk leaves nothing, and an old file stays. save_new
 * replaces nothing: TERN_ERR_EXISTS. restore puts
 * them in place of what the session held; generation then goes on with the same bits as without the
 * detour, on every instruction set and for any number of threads. The last token's logits are not
 * kept: use tern_session_reuse or evaluate something. A sampler's random stream is not part of it.
 *
 * restore needs the same model (tern_model_identity) and cache format, and a context that is large
 * enough. The file may be anybody's: it is checked to its end before the session is touched, and
 * when restore fails the session is as it was (only when the file changes in between, empty).
 * Errors: TERN_ERR_IO, TERN_ERR_NOMEM, TERN_ERR_CHANGED, TERN_ERR_EXISTS (save, over the model's
 * own file), TERN_ERR_SESSION (not a session file, truncated, damaged, another version),
 * TERN_ERR_SESSION_MODEL, TERN_ERR_CONTEXT, TERN_ERR_TOKEN_RANGE.
 */
TERN_MUST_CHECK tern_status tern_session_save(const tern_session *s, const char *path,
                                              tern_error *err);
TERN_MUST_CHECK tern_status tern_session_save_new(const tern_session *s, const char *path,
                                                  tern_error *err);
TERN_MUST_CHECK tern_status tern_session_restore(tern_session *s, const char *path,
                                                 tern_error *err);

/*
 * A session's work since it was made. A pass handles one batch; `reused` counts, for each
 * pass, the positions whose keys and values it found in the cache.
 */
typedef struct tern_session_work {
    uint64_t passes;   /* batches */
    uint64_t tokens;   /* evaluated, over all passes */
    uint64_t reused;   /* positions found in the cache, over all passes */
    uint64_t products; /* of a weight matrix and a batch, all of the layers for each pass; of the
                          head once a position */
    uint64_t scans;    /* picks that were decided by a scan of the head and head_rows exact rows */
    uint64_t head_rows;
} tern_session_work;

tern_session_work tern_session_work_done(const tern_session *s);

/*
 * Kernels that have run in the session, each once, in the order in which they first did: counted
 * where they run, and so, unlike tern_model_kernels, without gemm while every batch had one token.
 * Writes at most capacity, returns how many there are.
 */
size_t tern_session_kernels(const tern_session *s, const tern_kernel_row **rows, size_t capacity);

/* Pointer into the cache, for tests and cross-checks: K (or V) of a layer and key/value head at a
 * position, one row of the cache format (Q8_0: whole blocks); NULL when out of range, or when a
 * layer with a window does not have it any more (keep_all). */
const void *tern_session_kv(const tern_session *s, bool value, uint32_t layer, uint32_t head,
                            uint32_t position);

/* The same row as head_dim floats, exactly what attention reads; false where that gives NULL. */
bool tern_session_kv_floats(const tern_session *s, bool value, uint32_t layer, uint32_t head,
                            uint32_t position, float *out);

/*
 * The causal mask of n positions, for programs with an attention of their own: mask[i * n + j] is 0
 * where token i sees token j (j <= i) and minus infinity elsewhere. tern's attention needs none: it
 * is given the number of positions that a token sees.
 */
void tern_causal_mask(size_t n, float *mask);

/* ---- sampling and generation ---------------------------------------------------------------- */

typedef struct tern_logit_bias {
    int32_t token;
    float bias; /* finite; added to the token's logit */
} tern_logit_bias;

/* How a token is picked: the steps and their order are in docs/numerics.md. */
typedef struct tern_sampler_params {
    float temperature; /* 0: greedy (ties to the lowest id) */
    uint32_t top_k;    /* 0: all */
    float top_p;       /* 1: all */
    uint64_t seed;     /* of ChaCha8 */

    float min_p;                 /* share of the likeliest token's probability; 0: all */
    float repetition_penalty;    /* > 0; 1 (or 0): none */
    float presence_penalty;      /* 0: none */
    float frequency_penalty;     /* 0: none */
    uint32_t repeat_last_n;      /* tokens that the penalties look back at; 0: none */
    const tern_logit_bias *bias; /* [n_bias], copied */
    size_t n_bias;
} tern_sampler_params;

tern_sampler_params tern_sampler_params_default(void); /* greedy, seed 42, looks back at 64 */

/* params may be NULL: the defaults. */
TERN_MUST_CHECK tern_status tern_sampler_new(const tern_sampler_params *params, uint32_t n_vocab,
                                             tern_sampler **out, tern_error *err);
void tern_sampler_free(tern_sampler **s);

/* Start of the random stream again, and nothing to look back at. */
void tern_sampler_reset(tern_sampler *s, uint64_t seed);

/* Tells the sampler of a token of the text, which the penalties will look back at. tern_generate
 * does this for its prompt and for what it picks. Ids out of range do not count. */
void tern_sampler_accept(tern_sampler *s, int32_t token);

/* Draws a token from logits[n_vocab]; does not change them, and does not accept the token.
 * TERN_ERR_NONFINITE on NaN or infinity. */
TERN_MUST_CHECK tern_status tern_sampler_pick(tern_sampler *s, const float *logits, int32_t *token,
                                              tern_error *err);

/* Lowest index of the largest value. n >= 1. */
int32_t tern_argmax(const float *logits, size_t n);

/* Called after each accepted token, with the time since the call began; return false to stop. */
typedef bool tern_token_callback(int32_t token, double seconds, void *user);

typedef struct tern_generation {
    size_t n_prompt, n_generated;
    double prefill_seconds, decode_seconds, first_token_seconds;
    double p50_ms, p95_ms; /* of the time between tokens */
    tern_end stop;
    size_t n_drafted, n_accepted; /* tokens that were guessed; of these, that were right */
} tern_generation;

/*
 * Guessing: tokens are guessed from earlier text of the sequence and computed in one pass with the
 * last token. Those that would have been picked are kept. Tokens, random numbers,
 * log-probabilities and digests are the same in every mode, and so is what a session holds
 * afterwards; only times differ.
 */
typedef enum tern_draft_mode {
    TERN_DRAFT_NEVER,
    TERN_DRAFT_WHERE_IT_PAYS, /* as many as measured times and earlier guesses recommend */
    TERN_DRAFT_ALWAYS         /* as many as there are, for tests */
} tern_draft_mode;

typedef struct tern_generate_params {
    size_t max_tokens;
    bool ignore_end;            /* go on after the model's end-of-text tokens */
    const int32_t *stop_tokens; /* [n_stop_tokens] further tokens that end the text */
    size_t n_stop_tokens;
    tern_draft_mode draft; /* takes 12 bytes for each position of the session, while it runs */
} tern_generate_params;

/*
 * Evaluates the prompt after what the session holds, then picks and evaluates up to max_tokens
 * tokens. A token that ends the text is neither reported nor evaluated. `callback` and `result` may
 * be NULL. With guesses more positions may be computed than tokens are reported, never kept.
 */
TERN_MUST_CHECK tern_status tern_generate(tern_session *session, tern_sampler *sampler,
                                          const int32_t *prompt, size_t n_prompt,
                                          const tern_generate_params *params,
                                          tern_token_callback *callback, void *user,
                                          tern_generation *result, tern_error *err);

/*
 * A forward pass of the caller's own. Computes into logits[n_vocab], 64-byte aligned, what may
 * follow when `tokens` are appended to all tokens of the calls before: the prompt first, then each
 * token that was accepted.
 */
typedef tern_status tern_forward_fn(const int32_t *tokens, size_t n, float *logits, void *user,
                                    tern_error *err);

typedef struct tern_forward_model {
    tern_forward_fn *forward;
    void *user;
    const tern_tokenizer *tokenizer; /* whose end-of-text tokens end the text; NULL: none do */
    size_t n_ctx;                    /* tokens that fit, prompt included; 0: any number */
} tern_forward_model;

/*
 * tern_generate over a forward pass of the caller's: the same loop, sampler, stops and callbacks.
 * The vocabulary's size is the sampler's. Nothing is guessed. An error of `forward` ends it and is
 * its error.
 */
TERN_MUST_CHECK tern_status tern_generate_with(const tern_forward_model *model,
                                               tern_sampler *sampler, const int32_t *prompt,
                                               size_t n_prompt, const tern_generate_params *params,
                                               tern_token_callback *callback, void *user,
                                               tern_generation *result, tern_error *err);

/* ---- when things go wrong -------------------------------------------------------------------- */

/*
 * For programs that want more than to die by a signal. The library installs no handlers for them
 * (only one of SIGILL for the microseconds in which it tries instructions); these two may be called
 * in one (they are async-signal-safe) and from any thread.
 *
 * A model's file is read through a map. When the file becomes shorter, or its disk fails, the
 * next access raises SIGBUS. tern_mapped_file tells which file holds the address (si_addr), NULL
 * when it is not one of tern's. The access cannot go on: say what happened and end the process.
 */
const char *tern_mapped_file(const void *address);

/*
 * The folder in which the program keeps files that it could make again: $XDG_CACHE_HOME/tern, or
 * $HOME/.cache/tern where that is not set. Writes at most size bytes with the terminator, returns
 * the length of the whole path; 0 when neither variable holds an absolute path. Creates nothing.
 */
size_t tern_cache_default(char *path, size_t size);

/*
 * Files that tern writes have a temporary name until they are complete. Removes those that are
 * being written now; they cannot be completed afterwards. For a handler that ends the process.
 */
void tern_temporary_files_remove(void);

TERN_API_END

#endif
