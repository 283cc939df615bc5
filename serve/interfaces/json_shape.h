/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_JSON_SHAPE_H
#define TERN_SERVE_INTERFACES_JSON_SHAPE_H

/*
 * A short notation for shapes of JSON values, from which JSON Schema is made:
 *
 *   s i n b ~ *    a text, an integer, a number, a truth value, null, anything
 *   "word"         that text
 *   @name          a shape that has a name of its own
 *   [x]            an array of x
 *   {a:x,b?:y}     an object with a, and perhaps b; {*:x}: all members are x
 *   x|y            either
 */

#include "base/json_tree/text.h"

/* Appends the schema of a shape. The shape must be valid: it is not checked. */
void shape_write(const char *shape, text *out);

#endif
