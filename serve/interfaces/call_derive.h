/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_CALL_DERIVE_H
#define TERN_SERVE_INTERFACES_CALL_DERIVE_H

/* Takes the form of calls from texts that a template has written about the probe's tools. */

#include "serve/interfaces/call_form.h"
#include "tern/tokenizer.h"

#define CALL_PROBE_FIRST "tern_first"
#define CALL_PROBE_SECOND "tern_second"
#define CALL_PROBE_ASKED "Quokkas?"
#define CALL_PROBE_ANSWER "Quetzals."
#define CALL_PROBE_TEXT_1 "quick brown"
#define CALL_PROBE_TEXT_2 "lazy dogs"
#define CALL_PROBE_NUMBER_1 "7301"
#define CALL_PROBE_NUMBER_2 "9402"

typedef struct call_samples {
    const tern_tokenizer *tokenizer;
    const char *arguments;   /* of each call */
    char *plain, *one, *two; /* an answer without a call, with one, with two; two may be NULL */
    const char *ids[2];      /* of the calls */
} call_samples;

/* False: there is no form that is understood. It is a guess that must be tried. */
bool call_derive(const call_samples *samples, call_form *out);

#endif
