/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_INSPECT_METADATA_VALUES_H
#define TERN_TOOLS_INSPECT_METADATA_VALUES_H

/* Metadata values of a model file, for people and as JSON; long arrays and texts are cut. */

#include <stddef.h>

#include "base/json_tree/value.h"
#include "tern/gguf.h"

/* The value as one line of printable text, always terminated. */
void value_text(const tern_gguf_value *value, char *text, size_t size);

/* A scalar, or for arrays {"array": type, "count": n, "first": [...]}. */
json_t *value_json(const tern_gguf_value *value);

#endif
