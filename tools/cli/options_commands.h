/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CLI_OPTIONS_COMMANDS_H
#define TERN_TOOLS_CLI_OPTIONS_COMMANDS_H

/* Sets of commands, for the tables of options: bit 1 << command_id for each. */

#include "tools/cli/options.h"

enum {
    RUN = 1 << COMMAND_RUN,
    CHAT = 1 << COMMAND_CHAT,
    SERVE = 1 << COMMAND_SERVE,
    EMBED = 1 << COMMAND_EMBED,
    LOGITS = 1 << COMMAND_LOGITS,
    SCORE = 1 << COMMAND_SCORE,
    BENCH = 1 << COMMAND_BENCH,
    TUNE = 1 << COMMAND_TUNE,
    PLAN = 1 << COMMAND_PLAN,
    INSPECT = 1 << COMMAND_INSPECT,
    KERNELS = 1 << COMMAND_KERNELS,
    SYNTH = 1 << COMMAND_SYNTH,
    VERIFY = 1 << COMMAND_VERIFY_DETERMINISM,
    PERPLEXITY = 1 << COMMAND_PERPLEXITY,
    IMATRIX = 1 << COMMAND_IMATRIX,
    QUANTIZE = 1 << COMMAND_QUANTIZE,
    CROSSVAL = 1 << COMMAND_CROSSVAL,
    ANSWERS = RUN | CHAT,      /* commands that generate text */
    SAMPLES = ANSWERS | SERVE, /* commands that pick tokens, for themselves or for clients */
    CHECKS = 1 << COMMAND_VERIFY,
    REPLAY = 1 << COMMAND_REPLAY,
    RECEIPTS = CHECKS | REPLAY, /* commands that ask again what was recorded */
    TOKENIZE = 1 << COMMAND_TOKENIZE,
    CONVERT = 1 << COMMAND_CONVERT,
    DEDUP = 1 << COMMAND_DEDUP,
    TEMPLATE = 1 << COMMAND_CHAT_TEMPLATE,
    PULL = 1 << COMMAND_PULL,
    LIST = 1 << COMMAND_LIST,
    RECODES = QUANTIZE | CONVERT, /* commands that write a model */
    WRITES = RECODES | DEDUP | SYNTH | RUN | BENCH | LOGITS | IMATRIX | EMBED |
             PERPLEXITY, /* commands that write other files */
    EVALUATES = SAMPLES | EMBED | LOGITS | SCORE | BENCH | PERPLEXITY | CROSSVAL |
                IMATRIX, /* commands that run a model */
    FALLS_BACK =
        EVALUATES | VERIFY | TUNE | PLAN | TOKENIZE | TEMPLATE, /* use the small model without -m */
    EVERY = (1 << COMMAND_COUNT) - 1
};

/* ---- options_table_writing.c: measuring, and writing files ---- */

/* The row of an option from OPT_ALL up to, but without, OPT_THREADS. */
const option_spec *option_describe_writing(option_id id);

/* ---- options_table_others.c: options that have no effect ---- */

/* The row of an option from OPT_PRECISION on. */
const option_spec *option_describe_other(option_id id);

#endif
