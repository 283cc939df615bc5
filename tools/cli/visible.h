/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CLI_VISIBLE_H
#define TERN_TOOLS_CLI_VISIBLE_H

/*
 * What files, models and arguments say, for the eyes of a person: nothing in it steers a terminal
 * or turns the order of what is read around.
 */

#include <stdbool.h>
#include <stddef.h>

/*
 * Copies bytes[size] to out, which has room for as many and may be the same, and returns how many
 * it wrote. A '?' stands for each control character (C0, DEL, C1), each mark that directs text or
 * separates lines (U+200E, U+202E, U+2066, U+2028 and their kin), and each piece of broken UTF-8.
 * lines: '\n' and '\t' stay.
 */
size_t visible_copy(const char *bytes, size_t size, bool lines, char *out);

#endif
