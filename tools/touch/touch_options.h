/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_TOUCH_TOUCH_OPTIONS_H
#define TERN_TOOLS_TOUCH_TOUCH_OPTIONS_H

/* The work-touch that the command line asks for, of `tern bench` and `tern run`. */

#include "tools/cli/options.h"
#include "tools/model/json.h"
#include "tools/touch/touch.h"

/* Opens what --touch-bytes asks for; without it *t stays without words. EXIT_DONE, or the exit
 * status after a complaint. */
int touch_open_as_asked(const options *o, touch *t);

/* What --verify-touch asks for: EXIT_FAILED, after a complaint, when a word was left out. */
int touch_verify_as_asked(const options *o, const touch *t);

/* `touch`, if there was one (NULL: there was not). */
void touch_set_json(json_t *root, const touch *t);

#endif
