/* SPDX-License-Identifier: Apache-2.0 */
/* Environment variables of the options. */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/environment_names.h"
#include "tools/cli/options.h"

enum { COLUMNS = 98, FLAGS = 26 }; /* width of a line and of the column of flags */

bool option_variable(const option_spec *spec, char *name, size_t size) {
    if (spec->one_call)
        return false;
    (void)snprintf(name, size, "TERN_%s", spec->name);
    for (char *c = name; *c != '\0'; c++)
        *c = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
    return true;
}

/* True for names that other programs use, too. */
static bool is_common(const char *name) {
    return strncmp(name, "TERN_", 5) != 0 && strncmp(name, "BITNET_", 7) != 0 &&
           strncmp(name, "IE_", 3) != 0;
}

const char *option_environment(const option_spec *spec, char name[WORD_BYTES]) {
    if (option_variable(spec, name, WORD_BYTES)) {
        const char *text = getenv(name);
        if (text != NULL && text[0] != '\0')
            return text;
    }
    const char *list = spec->variables;
    while (word_next(&list, name)) {
        const char *text = getenv(name);
        if (text != NULL && text[0] != '\0' && (!is_common(name) || option_accepts(spec, text)))
            return text;
    }
    return NULL;
}

/* Reports variables with such names whose values the option does not accept. */
static void remark_ignored(const option_spec *spec, FILE *out) {
    char name[WORD_BYTES];
    const char *list = spec->variables;
    while (word_next(&list, name)) {
        const char *text = getenv(name);
        if (is_common(name) && text != NULL && text[0] != '\0' && !option_accepts(spec, text))
            fprintf(out, "tern: %s is ignored: --%s does not take its value\n", name, spec->name);
    }
}

/* Prints for --verbose which set variables of other programs are ignored. */
static void remark_variables(const options *o, FILE *out) {
    for (int id = 0; id < OPT_COUNT; id++)
        if (option_applies((option_id)id, o->command))
            remark_ignored(option_describe((option_id)id), out);
}

/* True if an option of another program was given with a value that has no effect. */
static bool is_without_effect(const options *o, option_id id) {
    const option_spec *spec = option_describe(id);
    return spec->remark != NULL && options_given(o, id) &&
           (spec->works == NULL || strcmp(spec->works, options_text(o, id)) != 0);
}

void options_print_remarks(const options *o, FILE *out) {
    for (int id = 0; id < OPT_COUNT; id++) {
        const option_spec *spec = option_describe((option_id)id);
        if (!is_without_effect(o, (option_id)id))
            continue;
        char name[WORD_BYTES];
        if (o->values[id].source == OPTION_FLAG || option_environment(spec, name) == NULL)
            fprintf(out, "tern: --%s has no effect: %s\n", spec->name, spec->remark);
        else if (!is_common(name) || options_switch(o, OPT_VERBOSE))
            fprintf(out, "tern: %s has no effect: %s\n", name, spec->remark);
    }
    if (options_switch(o, OPT_VERBOSE))
        remark_variables(o, out);
}

const char *options_ignored_strictly(const options *o) {
    static const option_id computing[] = {OPT_PRECISION, OPT_GPU_LAYERS};
    for (size_t i = 0; i < sizeof computing / sizeof *computing; i++) {
        const option_value *v = &o->values[computing[i]];
        const bool asks = is_without_effect(o, computing[i]) && strcmp(v->text, "auto") != 0 &&
                          strcmp(v->text, "0") != 0;
        if (options_switch(o, OPT_STRICT) && asks && v->source == OPTION_FLAG)
            return option_describe(computing[i])->name;
    }
    return NULL;
}

bool option_is_repeated(option_id id) {
    for (int i = 0; i < (int)id; i++)
        if (strcmp(option_describe((option_id)i)->name, option_describe(id)->name) == 0)
            return true;
    return false;
}

void help_print_environment(FILE *out) {
    fprintf(out,
            "Each of these variables sets the flag beside it for the commands that take it.\n"
            "The flag wins over the variable, the first variable over the others; an empty\n"
            "variable counts as not set; a value that the flag would refuse is an error,\n"
            "and so is a name in TERN_ that is not known. Names without TERN_, BITNET_ or IE_\n"
            "are used by others too and only count with a value that the flag takes.\n\n");
    for (int id = 0; id < OPT_COUNT; id++) {
        const option_spec *spec = option_describe((option_id)id);
        char name[WORD_BYTES];
        if (option_is_repeated((option_id)id) || !option_variable(spec, name, sizeof name))
            continue;
        char expected[128];
        option_expectation(spec, expected, sizeof expected);
        int at = fprintf(out, "  --%s", spec->name);
        at += fprintf(out, "%*s%s%s%s", at < FLAGS ? FLAGS - at : 1, "", name,
                      spec->variables != NULL ? " " : "",
                      spec->variables != NULL ? spec->variables : "");
        const bool fits = at + 3 + (int)strlen(expected) <= COLUMNS;
        fprintf(out, "%s%*s(%s)\n", fits ? " " : "\n", fits ? 0 : FLAGS, "", expected);
    }
}
