/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/manual/manual.h"

#include <string.h>

page_value page_value_of(const option_spec *spec) {
    if (spec->type == OPTION_SWITCH)
        return PAGE_NO_VALUE;
    if (spec->type == OPTION_CHOICE)
        return PAGE_WORDS;
    const bool file = strcmp(spec->argument, "FILE") == 0 || strcmp(spec->argument, "FOLDER") == 0;
    return file ? PAGE_FILE : PAGE_OTHER;
}

page_flags page_flags_of(const option_spec *spec) {
    return (page_flags){.spec = spec, .lists = {spec->name, spec->aliases}};
}

/* Long flags first, then the letter, then the word with one dash. */
bool page_flags_next(page_flags *f, char flag[WORD_BYTES + 2]) {
    char word[WORD_BYTES];
    for (; f->state < 2; f->state++) {
        if (word_next(&f->lists[f->state], word)) {
            (void)snprintf(flag, WORD_BYTES + 2, "--%s", word);
            return true;
        }
    }
    if (f->state++ == 2 && f->spec->letter != 0) {
        (void)snprintf(flag, WORD_BYTES + 2, "-%c", f->spec->letter);
        return true;
    }
    if (f->state <= 4 && f->spec->word != NULL) {
        f->state = 5;
        (void)snprintf(flag, WORD_BYTES + 2, "-%s", f->spec->word);
        return true;
    }
    return false;
}

void page_print_escaped(FILE *out, const char *text, const char *special) {
    for (const char *c = text; *c != '\0'; c++) {
        if (strchr(special, *c) != NULL)
            fputc('\\', out);
        fputc(*c, out);
    }
}
