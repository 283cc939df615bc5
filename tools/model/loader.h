/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_MODEL_LOADER_H
#define TERN_TOOLS_MODEL_LOADER_H

/* From the command line to a model, a session or an engine, and a prompt; shared by the commands
 * that run one. */

#include "tern/engine.h"
#include "tern/tune.h"
#include "tools/cli/options.h"
#include "tools/model/params.h"

typedef struct loaded {
    tern_model *model;
    tern_session *session; /* or */
    tern_engine *engine;
    uint32_t threads;                /* of what is open of these two */
    const tern_tokenizer *tokenizer; /* NULL: the file has none, see tokenizer_error */
    tern_error tokenizer_error;
    tern_model_info info;
    tern_model_loading loading;
    const tern_kernel_row *kernels[64];
    size_t n_kernels;
    bool tuned_late; /* there is nothing more to measure; late_tuning.h */
    bool keep_all;   /* set before a session is opened: it keeps keys and values of all positions */
} loaded;

/* The model's path: --model, else the shipped one; NULL (after a complaint) when there is none. */
const char *loader_model_path(const options *o, bool may_use_shipped);

/* The path of the small model that comes with tern; NULL: it is not there. */
const char *loader_shipped_model(void);

/*
 * Opens the model, then a session for it; loader_open does both. EXIT_DONE, or the exit status
 * after a complaint. Call loader_close in any case; *l must be zero-initialised.
 */
int loader_open_model(const options *o, bool may_use_shipped, loaded *l);
int loader_open_session(const options *o, loaded *l);
int loader_open_session_of(const options *o, uint32_t n_ctx, loaded *l);   /* in place of --ctx */
int loader_open_session_on(const options *o, uint32_t threads, loaded *l); /* ... of --threads */

/* The same model once more, with kernels of another instruction set where there is a weaker one,
 * and matrices where they are in memory already. The caller frees it. The exit status. */
int loader_open_other(const options *o, const loaded *l, tern_model **out);

/* An engine for an open model. What the options say of it; the caller adds sizes of its own. */
tern_engine_params loader_engine_params(const options *o, const loaded *l);
int loader_open_engine(const tern_engine_params *params, loaded *l);

/* The positions of the pages that n sequences of so many positions take. */
uint64_t loader_positions(uint64_t n, uint32_t positions);

/* tern_engine_pool_bytes; 0 for params that an engine refuses: opening it says why. */
uint64_t loader_pool_bytes(const loaded *l, const tern_engine_params *params, uint64_t positions);

/* Prompts that such an engine computes at once, and as many may wait. */
enum { LOADER_PROMPTS_AT_ONCE = 16 };

/* One for prompts of up to n_ctx positions that nothing follows, as many at once as fill passes. */
int loader_open_engine_of(const options *o, uint32_t n_ctx, loaded *l);

int loader_open(const options *o, bool may_use_shipped, loaded *l);
void loader_close(loaded *l);

/* Complains of instruction sets that this machine announces but cannot execute. */
void loader_report_isas(void);

/*
 * The same; then the features that --isa and --disable (or their variables) leave, or the exit
 * status of what is wrong with them. For what opens no model: tern_model_open looks itself.
 */
int loader_check_isa(const options *o, uint64_t *mask);

/* Names, in one line on standard error, what the file holds and tern does not know; if anything. */
void loader_report_unused(const tern_model *model, const char *path);

/* The same of what speaks against how codes are read. */
void loader_report_doubt(const tern_model *model, const char *path);

/* The same of a precision of activations that was asked for and is not used. */
void loader_report_activations(const tern_model *model, const char *path);

/* Tells why shared bytes are not used, and with --dedup-debug or --verbose what came of them. */
void loader_report_dedup(const options *o, const tern_model *model);

/* Fills tokenizer, info and kernels of *l from its open model. */
void loader_describe(const options *o, loaded *l);

/* After the work: complains, and fails, when the model's file was changed meanwhile. */
int loader_check_file(const loaded *l);

/* Says on standard error which tokenizer is used, if it is not the model's own (NULL: in any case).
 */
void loader_report_tokenizer(const tern_tokenizer *t, const char *model);

/* The tokenizer that --tokenizer, or else the model's file has, without the model; an exit status.
 */
int loader_open_tokenizer(const options *o, tern_tokenizer **t);

/* --kv as a format. */
tern_format loader_kv_format(const options *o);

typedef struct prompt {
    char *text; /* as given; NULL with --tokens */
    size_t size;
    int32_t *ids;
    size_t n;
} prompt;

/* Reads what --prompt, --file, --tokens or standard input hold: its text, or its ids. Free in any
 * case. */
int prompt_take(const options *o, prompt *p);

/* Reads and tokenizes what --prompt, --file, --tokens or standard input hold, which must fit into
 * the session. Free in any case. */
int prompt_read(const options *o, const loaded *l, prompt *p);
void prompt_free(prompt *p);

/* Says why a text has no tokens, and what would help; the exit status. */
int prompt_complain(const tern_tokenizer *t, const tern_error *err);

/* Says that the model's chat format leaves message i out; c->n: nothing is left out. */
void prompt_tell_unseen(const tern_conversation *c, size_t i);

/* Gives a prompt that has a text its tokens; EXIT_DONE, or the exit status after a complaint. */
int prompt_tokenize(const options *o, const loaded *l, prompt *p);

#endif
