/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CLI_NEAR_WORD_H
#define TERN_TOOLS_CLI_NEAR_WORD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/word_list.h"

/*
 * Distance of two words: the fewest insertions, deletions, replacements and swaps of neighbours,
 * none of which touches a letter twice. Only the first WORD_BYTES bytes count.
 */
size_t word_distance(const char *a, const char *b);

/* Whether a word so far away may have been meant: one mistake, and one more for every four letters.
 */
bool word_is_near(size_t distance, const char *word);

#endif
