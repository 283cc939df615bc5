/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CLI_VISIBLE_H
#define TERN_TOOLS_CLI_VISIBLE_H

/*
 * Makes text from files, models and arguments safe to show: the result cannot control a terminal or
 * reverse the order of what is read.
 */

#include <stdbool.h>
#include <stddef.h>

/*
 * Copies bytes[size] to out, which has room for as many and may be the same buffer, and returns the
 * number of bytes written. A '?' replaces each control character (C0, DEL, C1), each character that
 * sets text direction or separates lines (U+200E, U+202E, U+2066, U+2028 and similar), and each
 * piece of invalid UTF-8. lines: '\n' and '\t' are kept.
 */
size_t visible_copy(const char *bytes, size_t size, bool lines, char *out);

#endif
