/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_RECORD_RECEIPT_H
#define TERN_TOOLS_RECORD_RECEIPT_H

/*
 * Receipts of the program (receipts/document.h): from a finished run of a command to a file.
 *
 *   written    a command keeps a receipt_watch while it generates, then calls receipt_write, which
 *              adds the model's hash, tests of its own and the machine, and saves a JSON document:
 *              nothing that breaks a rule is ever saved.
 *   read       receipt_read parses and owns nothing else; the caller decrefs the tree.
 *   validated  receipt_check holds the document against every rule, without the model.
 *   replayed   receipt_replay runs it again and compares tokens and logits bit for bit.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json_tree/value.h"
#include "receipts/document.h"
#include "receipts/watch.h"
#include "tern/tern.h"
#include "tools/answer/answerer.h"
#include "tools/cli/targets.h"
#include "tools/load/loader.h"
#include "tools/prompt/prompt.h"

/* ---- writing --------------------------------------------------------------------------------- */

struct form; /* tools/answer/form.h */

/* A finished run. Everything is borrowed. The session in `l` still holds prompt and output, and
 * held nothing before. */
typedef struct receipt_run {
    const options *o;
    const loaded *l;
    const prompt *prompt;
    const tern_request *request;
    const struct form *form; /* the form of the answer; NULL: none */
    const answerer *answer;
    const receipt_watch *watch;
} receipt_run;

/* ---- documents ------------------------------------------------------------------------------- */

/*
 * Builds the receipt of a run, runs its tests, and saves it under --receipt's name, signed if
 * --sign-key is given. `benchmark` (borrowed, may be NULL) is included unchanged. Returns the exit
 * status, after a complaint unless it is EXIT_DONE. A receipt that would not pass the checks is not
 * written.
 */
int receipt_write(const receipt_run *run, const json_t *benchmark);

/*
 * Seals a document with its digest, signs it if --sign-key is given, and saves it at `path`.
 * Returns the exit status, after a complaint unless it is EXIT_DONE. A receipt that would not pass
 * the checks is not written.
 */
int receipt_finish(json_t *receipt, const options *o, const char *path);

/* The document in a file ("-": standard input); NULL after a complaint. The caller decrefs it. */
json_t *receipt_read(const char *path);

/* Checks before a run that --sign-key has something to sign, and a key to sign it with. EXIT_DONE,
 * or after a complaint EXIT_USAGE or EXIT_FAILED. */
int receipt_check_key(const options *o);

/* Saves a document as indented JSON. Returns the exit status. */
int receipt_save(const json_t *receipt, const char *path, tern_out_mode mode);

#endif
