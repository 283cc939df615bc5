/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_TOUCH_TOUCH_OPTIONS_H
#define TERN_TOOLS_TOUCH_TOUCH_OPTIONS_H

/* The work-touch of `tern bench` and `tern run`, as the command line asks for it. */

#include "base/json_tree/value.h"
#include "tools/cli/options.h"
#include "tools/touch/touch.h"

/* Opens what --touch-bytes asks for; without it *t has no words. EXIT_DONE, or the exit status
 * after a complaint. */
int touch_open_as_asked(const options *o, touch *t);

/*
 * Checks the sum if --verify-touch is given: EXIT_FAILED after a complaint if a word was skipped.
 */
int touch_verify_as_asked(const options *o, const touch *t);

/* Sets "touch" if there was one (t may be NULL). */
void touch_set_json(json_t *root, const touch *t);

#endif
