/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_LOAD_LOADER_H
#define TERN_TOOLS_LOAD_LOADER_H

/* Opens a model, and a session or an engine, as the command line says; shared by the commands that
 * run a model. */

#include "tern/engine.h"
#include "tern/tune.h"
#include "tools/cli/options.h"
#include "tools/load/params.h"

typedef struct loaded {
    tern_model *model;
    tern_model *draft;     /* of --draft-model; NULL: none */
    tern_session *session; /* either this, or */
    tern_engine *engine;
    uint32_t threads;                /* of the session or engine that is open */
    const tern_tokenizer *tokenizer; /* NULL: the file has none, see tokenizer_error */
    tern_error tokenizer_error;
    tern_error problem; /* why the model could not be opened */
    tern_model_info info;
    tern_model_loading loading;
    const tern_kernel_row *kernels[64];
    size_t n_kernels;
    bool tuned_late; /* nothing is left to measure; late_tuning.h */
    bool keep_all;   /* set before a session is opened: it keeps keys and values of all positions */
} loaded;

/* The model's path: --model, or the shipped model; NULL (after a complaint) if there is none. */
const char *loader_model_path(const options *o, bool may_use_shipped);

/* The path of the small model that comes with tern; NULL: it is missing. */
const char *loader_shipped_model(void);

/*
 * Opens the model, then a session for it; loader_open does both. EXIT_DONE, or the exit status
 * after a complaint. *l must be zero-initialised; call loader_close in any case.
 */
int loader_open_model(const options *o, bool may_use_shipped, loaded *l);
int loader_open_file(const options *o, const char *path, loaded *l); /* the model of this file */

/* Does the same beside an open model (NULL: there is none), whose equal matrices it reads, unless
 * it runs on another device or as ranks. */
int loader_open_beside(const options *o, const char *path, tern_model *share, loaded *l);

/* The model that one with these parameters can be opened beside: `share`, or NULL. */
tern_model *loader_share(const tern_model_params *params, tern_model *share);
int loader_open_session(const options *o, loaded *l);
int loader_open_session_of(const options *o, uint32_t n_ctx, loaded *l);   /* replaces --ctx */
int loader_open_session_on(const options *o, uint32_t threads, loaded *l); /* replaces --threads */

/* Opens the same model again with the kernels of a weaker instruction set, if there is one; shares
 * the matrices that are already in memory. The caller frees it. Returns the exit status. */
int loader_open_other(const options *o, const loaded *l, tern_model **out);

/*
 * Parameters of an engine for an open model, as the options say. The caller sets sizes of its own.
 */
tern_engine_params loader_engine_params(const options *o, const loaded *l);
int loader_open_engine(const tern_engine_params *params, loaded *l);

/* The number of positions in the pages that n sequences of so many positions need. */
uint64_t loader_positions(uint64_t n, uint32_t positions);

/* tern_engine_pool_bytes; 0 for parameters that an engine refuses: opening it reports why. */
uint64_t loader_pool_bytes(const loaded *l, const tern_engine_params *params, uint64_t positions);

/* The number of prompts that such an engine computes at once; as many may wait. */
enum { LOADER_PROMPTS_AT_ONCE = 16 };

/* Opens an engine for prompts of up to n_ctx positions that nothing is generated for. It computes
 * as many at once as fill its passes. */
int loader_open_engine_of(const options *o, uint32_t n_ctx, loaded *l);

int loader_open(const options *o, bool may_use_shipped, loaded *l);
void loader_close(loaded *l);

/* Complains about instruction sets that this machine announces but cannot execute. */
void loader_report_isas(void);

/*
 * Does the same. Then returns the features that --isa and --disable (or their variables) allow, or
 * the exit status of an error in them. For commands that open no model: tern_model_open checks by
 * itself.
 */
int loader_check_isa(const options *o, uint64_t *mask);

/* Lists, in one line on standard error, what the file contains that tern does not know, if
 * anything. */
void loader_report_unused(const tern_model *model, const char *path);

/* Reports in the same way what casts doubt on how codes are read. */
void loader_report_doubt(const tern_model *model, const char *path);

/* Reports in the same way a precision of activations that was asked for but is not used. */
void loader_report_activations(const tern_model *model, const char *path);

/*
 * Reports why shared bytes are not used; with --dedup-debug or --verbose also figures about them.
 */
void loader_report_dedup(const options *o, const tern_model *model);

/* Fills tokenizer, info and kernels of *l from its open model. */
void loader_describe(const options *o, loaded *l);

/* After the work: complains and fails if the model's file has changed meanwhile. */
int loader_check_file(const loaded *l);

/* Reports on standard error which tokenizer is used, if it is not the model's own (model NULL: in
 * any case). */
void loader_report_tokenizer(const tern_tokenizer *t, const char *model);

/* Opens the tokenizer of --tokenizer, or that of the model's file, without the model. Returns the
 * exit status. */
int loader_open_tokenizer(const options *o, tern_tokenizer **t);

/* --kv as a format. */
tern_format loader_kv_format(const options *o);

#endif
