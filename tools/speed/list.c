/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lists of numbers from the command line of tern bench. */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "tools/speed/speed.h"

/* Reads one decimal number at *text and advances *text past it. */
static bool read_number(const char **text, uint64_t *number) {
    char *end;
    if (**text < '0' || **text > '9')
        return false; /* strtoull would accept signs and blanks */
    errno = 0;
    *number = strtoull(*text, &end, 10);
    *text = end;
    return errno == 0;
}

int bench_list(const options *o, option_id id, uint64_t min, uint64_t max, uint64_t *list,
               size_t *n) {
    const char *text = options_text(o, id);
    const char *name = option_describe(id)->name;
    *n = 0;
    for (const char *at = text; at != NULL;) {
        uint64_t number;
        if (!read_number(&at, &number) || (*at != ',' && *at != '\0') || number < min ||
            number > max) {
            complain("--%s: '%.60s' must be numbers from %" PRIu64 " to %" PRIu64
                     " with commas between them",
                     name, text, min, max);
            return EXIT_USAGE;
        }
        if (*n == BENCH_LIST_MAX) {
            complain("--%s: more than %d numbers", name, BENCH_LIST_MAX);
            return EXIT_USAGE;
        }
        list[(*n)++] = number;
        at = *at == ',' ? at + 1 : NULL;
    }
    return EXIT_DONE;
}
