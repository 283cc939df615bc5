/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CLI_NEAR_WORD_H
#define TERN_TOOLS_CLI_NEAR_WORD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/word_list.h"

/*
 * Edit distance of two words: the fewest insertions, deletions, replacements and swaps of
 * neighbours that touch no letter twice. Only the first WORD_BYTES bytes count.
 */
size_t word_distance(const char *a, const char *b);

/* True if a word at this distance may have been meant: one mistake, plus one for every four
 * letters. */
bool word_is_near(size_t distance, const char *word);

#endif
