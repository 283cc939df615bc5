/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_WORK_AUDIT_H
#define TERN_SERVE_WORK_AUDIT_H

/*
 * An answer that was given, once more: alone, on other kernels, by an engine of its own, pass by
 * pass when the server has nothing else to do. Used by one thread at a time.
 */

#include "serve/work/figures.h"
#include "serve/work/receipt.h"

typedef struct audit audit;

/* `model` is the server's once more, with other kernels, and outlives the audit; `like` is how the
 * server's engine works. Errors as tern_engine_new. */
TERN_MUST_CHECK tern_status audit_open(const tern_model *model, const tern_engine_params *like,
                                       audit **out, tern_error *err);

/* Takes an answer to repeat, unless it has one in work or no memory. Copies what it needs. */
void audit_note(audit *a, const receipt_answer *answer);

/* One pass for it; when it has ended it is counted. False: there is nothing to do. */
bool audit_step(audit *a, figures *f);

/* Sets *a to NULL; NULL is fine. */
void audit_free(audit **a);

#endif
