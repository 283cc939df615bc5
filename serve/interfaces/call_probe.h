/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_CALL_PROBE_H
#define TERN_SERVE_INTERFACES_CALL_PROBE_H

/*
 * Finds the form of calls in a chat template: conversations with calls of tools that nobody has are
 * written with it, and the form is in the difference to one without a call. A form counts only if
 * the calls that the template has written are found again by it.
 */

#include "serve/interfaces/call_form.h"
#include "tern/tokenizer.h"

/* False: the template writes no calls, or in a way that is not understood. */
bool call_probe(const tern_tokenizer *t, call_form *out);

/* The form of a model's calls: the template's, or the server's own (call_form.untold). */
void call_find(const tern_tokenizer *t, call_form *out);

#endif
