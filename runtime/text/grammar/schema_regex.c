/* SPDX-License-Identifier: Apache-2.0 */

/* Patterns of schemas as PCRE2 reads them, for texts that are there already. */

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "runtime/text/grammar/schema_check.h"

enum {
    MOST_STEPS = 1 << 20, /* of one search */
    MOST_DEPTH = 1 << 14,
    MOST_KIB = 1 << 14
};

static int search(const pcre2_code *code, tern_span text) {
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    pcre2_match_context *context = pcre2_match_context_create(NULL);
    int found = PCRE2_ERROR_NOMEMORY;
    if (match != NULL && context != NULL) {
        (void)pcre2_set_match_limit(context, MOST_STEPS);
        (void)pcre2_set_depth_limit(context, MOST_DEPTH);
        (void)pcre2_set_heap_limit(context, MOST_KIB);
        found = pcre2_match(code, (PCRE2_SPTR)(text.size > 0 ? text.data : ""), text.size, 0, 0,
                            match, context);
    }
    pcre2_match_data_free(match);
    pcre2_match_context_free(context);
    return found;
}

/* \uNNNN and \xNN as ECMA-262 has them; $ only at the very end. */
int tern_schema_matches(tern_span pattern, tern_span text) {
    const uint32_t options = PCRE2_UTF | PCRE2_ALT_BSUX | PCRE2_DOLLAR_ENDONLY |
                             PCRE2_ALLOW_EMPTY_CLASS | PCRE2_MATCH_UNSET_BACKREF;
    int number = 0;
    PCRE2_SIZE at = 0;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)pattern.data, pattern.size, options, &number, &at, NULL);
    if (code == NULL)
        return -1;
    const int found = search(code, text);
    pcre2_code_free(code);
    return found >= 0 ? 1 : found == PCRE2_ERROR_NOMATCH ? 0 : -1;
}
