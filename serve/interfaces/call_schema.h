/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_CALL_SCHEMA_H
#define TERN_SERVE_INTERFACES_CALL_SCHEMA_H

/* Says of the arguments of a tool by its schema whether they are texts, for forms that write texts
 * as they are. */

#include "base/json_tree/value.h"
#include "serve/interfaces/call_form.h"

/* The kind of values that a schema allows; `root` has the targets of its references. */
call_value call_schema_value(const json_t *root, const json_t *schema);

/* The schema of a property of an object; NULL: it is not named. */
const json_t *call_schema_property(const json_t *root, const char *name);

/* True if an object may have properties that its schema does not name: it says so, or names none.
 */
bool call_schema_is_open(const json_t *root);

#endif
