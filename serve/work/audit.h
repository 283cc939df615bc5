/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_WORK_AUDIT_H
#define TERN_SERVE_WORK_AUDIT_H

/*
 * Repeats an answer that was given: alone, on other kernels, by its own engine, pass by pass while
 * the server has nothing else to do. Only one thread at a time may use it.
 */

#include "serve/work/answer_metrics.h"
#include "serve/work/receipt.h"

typedef struct audit audit;

/* `model` is the server's model with other kernels, and must outlive the audit; `like` has the
 * parameters of the server's engine. Errors as tern_engine_new. */
TERN_MUST_CHECK tern_status audit_open(const tern_model *model, const tern_engine_params *like,
                                       audit **out, tern_error *err);

/* Begins to repeat an answer, unless another is in work or memory is short. Copies what it needs.
 */
void audit_note(audit *a, const receipt_answer *answer);

/* Computes one pass, and counts the answer when it has ended. False: there is nothing to do. */
bool audit_step(audit *a, answer_metrics *f);

/* Sets *a to NULL; NULL is fine. */
void audit_free(audit **a);

#endif
