/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_REPLAY_REPLAY_H
#define TERN_TOOLS_REPLAY_REPLAY_H

/* Replays a receipt. */

#include "tools/record/receipt.h"

/* Facts about a replay, for the summary. */
typedef struct replay_report {
    char isa[32], layout[16];
    uint32_t threads;
    uint64_t tokens, digests;
    double seconds;
} replay_report;

/*
 * Opens the model (locate.h; the receipt is at `path`) if its bytes are those that the receipt
 * names, evaluates the prompt and picks the tokens again, with the instruction set, threads, batch
 * and layout of the options. Adds a finding for the first difference, and for each wrong fact about
 * the model. The receipt must have passed receipt_check. Returns the exit status; findings alone
 * give EXIT_DONE.
 */
int receipt_replay(const json_t *receipt, const char *path, const options *o, receipt_findings *f,
                   replay_report *report);

#endif
