/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/environment_names.h"

/* ---- hints ----------------------------------------------------------------------------------- */

const char *command_nearest(const char *name) {
    const char *best = NULL;
    size_t best_distance = WORD_BYTES;
    for (int i = 0; i < COMMAND_COUNT; i++) {
        const char *candidate = command_describe((command_id)i)->name;
        const size_t distance = word_distance(name, candidate);
        if (distance < best_distance && word_is_near(distance, candidate)) {
            best = candidate;
            best_distance = distance;
        }
    }
    return best;
}

/* The command's long flag (or alias) nearest to a word; false when nothing is near. */
static bool nearest_flag(command_id command, const char *word, char nearest[WORD_BYTES]) {
    size_t best = WORD_BYTES;
    for (int id = 0; id < OPT_COUNT; id++) {
        const option_spec *spec = option_describe((option_id)id);
        const char *lists[] = {spec->name, spec->aliases};
        for (int k = 0; option_applies((option_id)id, command) && k < 2; k++) {
            char candidate[WORD_BYTES];
            while (word_next(&lists[k], candidate)) {
                const size_t distance = word_distance(word, candidate);
                if (distance < best && word_is_near(distance, candidate)) {
                    best = distance;
                    strcpy(nearest, candidate);
                }
            }
        }
    }
    return best < WORD_BYTES;
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool parse_switch(const char *text, uint64_t *value) {
    static const char *const words[2][4] = {{"0", "false", "no", "off"},
                                            {"1", "true", "yes", "on"}};
    for (unsigned v = 0; v < 2; v++) {
        for (int i = 0; i < 4; i++) {
            if (strcasecmp(text, words[v][i]) == 0) {
                *value = v;
                return true;
            }
        }
    }
    return false;
}

static bool parse_integer(const option_spec *spec, const char *text, uint64_t *value) {
    if (!isdigit((unsigned char)text[0]))
        return false;
    char *end;
    errno = 0;
    const unsigned long long n = strtoull(text, &end, 10);
    *value = n;
    return errno == 0 && *end == '\0' && n >= spec->min && n <= spec->max;
}

static bool parse_real(const option_spec *spec, const char *text, double *value) {
    if (text[strspn(text, "0123456789.eE+-")] != '\0')
        return false; /* no hexadecimal, infinity or NaN */
    char *end;
    *value = strtod(text, &end);
    return end != text && *end == '\0' && *value >= spec->low && *value <= spec->high;
}

static bool parse_choice(const option_spec *spec, const char *text) {
    const char *list = spec->choices;
    char word[WORD_BYTES];
    while (word_next(&list, word))
        if (spec->any_case ? strcasecmp(word, text) == 0 : strcmp(word, text) == 0)
            return true;
    return spec->or_path && strpbrk(text, "./") != NULL;
}

/* Reads text as a value of the option; false if it is not one. */
static bool parse_value(const option_spec *spec, const char *text, option_value *v) {
    v->text = text;
    switch (spec->type) {
    case OPTION_SWITCH:
        return parse_switch(text, &v->integer);
    case OPTION_INTEGER:
        return parse_integer(spec, text, &v->integer);
    case OPTION_REAL:
        return parse_real(spec, text, &v->real);
    case OPTION_CHOICE:
        return parse_choice(spec, text);
    case OPTION_TEXT:
        return true;
    }
    return false;
}

bool option_accepts(const option_spec *spec, const char *text) {
    option_value value;
    return parse_value(spec, text, &value);
}

void option_expectation(const option_spec *spec, char *text, size_t size) {
    if (spec->type == OPTION_INTEGER)
        (void)snprintf(text, size, "an integer from %" PRIu64 " to %" PRIu64, spec->min, spec->max);
    else if (spec->type == OPTION_REAL)
        (void)snprintf(text, size, "a number from %g to %g", spec->low, spec->high);
    else if (spec->type == OPTION_CHOICE)
        (void)snprintf(text, size, "one of: %s", spec->choices);
    else if (spec->type == OPTION_SWITCH)
        (void)snprintf(text, size, "1 or 0");
    else
        (void)snprintf(text, size, "a text");
}

/* Sets an option from a flag or variable, which messages call `origin`. */
static tern_status set_value(options *o, option_id id, option_source source, const char *origin,
                             const char *text, tern_error *err) {
    const option_spec *spec = option_describe(id);
    option_value value = {.source = source};
    if (!parse_value(spec, text, &value)) {
        char expected[128];
        option_expectation(spec, expected, sizeof expected);
        return tern_fail(err, TERN_ERR_ARG, "%s wants %s, not '%.100s'", origin, expected, text);
    }
    if (spec->repeats) {
        if (o->n_repeated == OPTIONS_MAX_REPEATED) {
            return tern_fail(err, TERN_ERR_ARG, "%s: more than %d values of options that repeat",
                             origin, OPTIONS_MAX_REPEATED);
        }
        o->repeated[o->n_repeated++] = (option_repeated){id, value};
    }
    o->values[id] = value;
    return TERN_OK;
}

/* ---- arguments ------------------------------------------------------------------------------- */

typedef struct arguments {
    options *o;
    int argc;
    char *const *argv;
    int next;
    tern_error *err;
} arguments;

bool option_find(command_id command, const char *name, size_t n, option_id *id) {
    for (int i = 0; i < OPT_COUNT; i++) {
        const option_spec *spec = option_describe((option_id)i);
        const char *lists[] = {spec->name, spec->aliases};
        for (int k = 0; option_applies((option_id)i, command) && k < 2; k++) {
            char word[WORD_BYTES];
            while (word_next(&lists[k], word)) {
                if (strlen(word) == n && strncmp(word, name, n) == 0) {
                    *id = (option_id)i;
                    return true;
                }
            }
        }
    }
    return false;
}

static bool find_short(command_id command, char letter, option_id *id) {
    for (int i = 0; i < OPT_COUNT; i++) {
        if (option_describe((option_id)i)->letter == letter &&
            option_applies((option_id)i, command)) {
            *id = (option_id)i;
            return true;
        }
    }
    return false;
}

/* The first command that takes a flag, "--name" or "-x"; NULL: none. */
static const char *command_with(const char *flag) {
    for (int i = 0; i < COMMAND_COUNT; i++) {
        option_id id;
        if (strncmp(flag, "--", 2) == 0
                ? option_find((command_id)i, flag + 2, strlen(flag + 2), &id)
                : find_short((command_id)i, flag[1], &id))
            return command_describe((command_id)i)->name;
    }
    return NULL;
}

static tern_status unknown_flag(const arguments *a, const char *flag) {
    char nearest[WORD_BYTES];
    const char *command = command_describe(a->o->command)->name;
    char word[WORD_BYTES];
    const size_t n = strcspn(flag, "=");
    (void)snprintf(word, sizeof word, "%.*s", (int)(n < WORD_BYTES ? n : WORD_BYTES - 1), flag);
    const char *other = word[1] == '-' || word[2] == '\0' ? command_with(word) : NULL;
    if (other != NULL) {
        return tern_fail(a->err, TERN_ERR_ARG,
                         "unknown option '%s', which `tern %s` has; see `tern %s --help`", word,
                         other, command);
    }
    if (strncmp(word, "--", 2) == 0 && nearest_flag(a->o->command, word + 2, nearest)) {
        return tern_fail(a->err, TERN_ERR_ARG, "unknown option '%s', did you mean --%s?", word,
                         nearest);
    }
    return tern_fail(a->err, TERN_ERR_ARG, "unknown option '%s', see `tern %s --help`", word,
                     command);
}

/* Handles one flag; `attached` is the value after '=' or after a short flag's letter, or NULL. */
static tern_status take_flag(arguments *a, option_id id, const char *flag, const char *attached) {
    const option_spec *spec = option_describe(id);
    if (spec->type == OPTION_SWITCH && attached == NULL)
        return set_value(a->o, id, OPTION_FLAG, flag, "1", a->err);
    if (attached == NULL && a->next == a->argc) {
        return tern_fail(a->err, TERN_ERR_ARG, "option '%s' needs a value: %s", flag,
                         spec->argument);
    }
    const char *text = attached != NULL ? attached : a->argv[a->next++];
    return set_value(a->o, id, OPTION_FLAG, flag, text, a->err);
}

static tern_status take_long(arguments *a, const char *flag) {
    const size_t n = strcspn(flag + 2, "=");
    option_id id;
    if (!option_find(a->o->command, flag + 2, n, &id))
        return unknown_flag(a, flag);
    char name[WORD_BYTES + 2];
    (void)snprintf(name, sizeof name, "--%.*s", (int)n, flag + 2);
    return take_flag(a, id, name, flag[2 + n] == '=' ? flag + 3 + n : NULL);
}

static bool find_word(command_id command, const char *word, option_id *id) {
    for (int i = 0; i < OPT_COUNT; i++) {
        const option_spec *spec = option_describe((option_id)i);
        if (spec->word != NULL && strcmp(spec->word, word) == 0 &&
            option_applies((option_id)i, command)) {
            *id = (option_id)i;
            return true;
        }
    }
    return false;
}

static tern_status take_short(arguments *a, const char *flag) {
    option_id id;
    if (find_word(a->o->command, flag + 1, &id))
        return take_flag(a, id, flag, NULL);
    const size_t n = strcspn(flag + 1, "=");
    if (n > 1 && option_find(a->o->command, flag + 1, n, &id)) { /* "-temp" does not mean -t emp */
        return tern_fail(a->err, TERN_ERR_ARG, "unknown option '-%.*s', did you mean --%.*s?",
                         (int)n, flag + 1, (int)n, flag + 1);
    }
    if (!find_short(a->o->command, flag[1], &id))
        return unknown_flag(a, flag);
    if (flag[2] != '\0' && option_describe(id)->type == OPTION_SWITCH)
        return unknown_flag(a, flag); /* switches cannot be combined */
    const char name[3] = {'-', flag[1], '\0'};
    return take_flag(a, id, name, flag[2] != '\0' ? flag + 2 : NULL);
}

static tern_status unexpected(const options *o, const char *text, tern_error *err) {
    return tern_fail(err, TERN_ERR_ARG, "unexpected argument '%.100s', see `tern %s --help`", text,
                     command_describe(o->command)->name);
}

static tern_status take_operand(arguments *a, const char *text) {
    options *o = a->o;
    if (o->n_operands == command_describe(o->command)->max_operands)
        return unexpected(o, text, a->err);
    o->operands[o->n_operands++] = text;
    return TERN_OK;
}

/* True if a flag gave the option its only value. */
static bool is_taken(const options *o, option_id id) {
    return o->values[id].source == OPTION_FLAG && !option_describe(id)->repeats;
}

/* Assigns operands that stand for options to those that no flag has set, in the command's order. */
static tern_status place_operands(options *o, tern_error *err) {
    const command_spec *spec = command_describe(o->command);
    const option_id last = spec->n_places > 0 ? spec->places[spec->n_places - 1] : OPT_MODEL;
    unsigned place = 0;
    for (unsigned i = 0; i < o->n_operands && spec->n_places > 0; i++) {
        while (place < spec->n_places && is_taken(o, spec->places[place]))
            place++;
        if (place == spec->n_places)
            return unexpected(o, o->operands[i], err);
        const option_id id = spec->places[place];
        o->model_may_be_prompt |= id == OPT_MODEL && (last == OPT_PROMPT || last == OPT_TEXT);
        const tern_status status =
            set_value(o, id, OPTION_FLAG, "an argument", o->operands[i], err);
        if (status != TERN_OK)
            return status;
    }
    o->n_operands = spec->n_places > 0 ? 0 : o->n_operands;
    return TERN_OK;
}

static tern_status take_arguments(arguments *a) {
    bool flags = true;
    while (a->next < a->argc) {
        const char *text = a->argv[a->next++];
        tern_status status;
        if (flags && strcmp(text, "--") == 0) {
            flags = false;
            continue;
        }
        if (flags && strncmp(text, "--", 2) == 0)
            status = take_long(a, text);
        else if (flags && text[0] == '-' && text[1] != '\0')
            status = take_short(a, text);
        else
            status = take_operand(a, text);
        if (status != TERN_OK)
            return status;
    }
    return TERN_OK;
}

/* ---- environment and defaults ---------------------------------------------------------------- */

static tern_status fill_in(options *o, option_id id, tern_error *err) {
    const option_spec *spec = option_describe(id);
    if (o->values[id].source != OPTION_UNSET || !option_applies(id, o->command))
        return TERN_OK;
    char name[WORD_BYTES];
    const char *text = option_environment(spec, name);
    if (text != NULL)
        return set_value(o, id, OPTION_ENVIRONMENT, name, text, err);
    if (spec->fallback != NULL)
        return set_value(o, id, OPTION_DEFAULT, spec->name, spec->fallback, err);
    return TERN_OK;
}

/* --precision fp32 means --activation-precision fp32 unless that option is given. */
static void settle_precision(options *o) {
    const option_value *asked = &o->values[OPT_PRECISION];
    if (options_given(o, OPT_PRECISION) && strcmp(asked->text, "fp32") == 0 &&
        !options_given(o, OPT_ACTIVATION_PRECISION))
        o->values[OPT_ACTIVATION_PRECISION] = *asked;
}

static bool wants_help(int argc, char *const *argv) {
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

tern_status options_parse(options *o, command_id command, int argc, char *const *argv,
                          tern_error *err) {
    *o = (options){.command = command};
    if (wants_help(argc, argv))
        return set_value(o, OPT_HELP, OPTION_FLAG, "--help", "1", err);
    arguments a = {.o = o, .argc = argc, .argv = argv, .err = err};
    tern_status status = take_arguments(&a);
    if (status == TERN_OK)
        status = place_operands(o, err);
    if (status == TERN_OK)
        status = environment_check(err);
    for (int id = 0; id < OPT_COUNT && status == TERN_OK; id++)
        status = fill_in(o, (option_id)id, err);
    if (status != TERN_OK)
        return status;
    settle_precision(o);
    const command_spec *spec = command_describe(command);
    if (o->n_operands < spec->min_operands) {
        return tern_fail(err, TERN_ERR_ARG, "missing argument: %s, see `tern %s --help`",
                         spec->operands, spec->name);
    }
    return TERN_OK;
}

void options_default(options *o, option_id id, const char *text) {
    option_value value = {.source = OPTION_DEFAULT};
    if (o->values[id].source <= OPTION_DEFAULT && parse_value(option_describe(id), text, &value))
        o->values[id] = value;
}

bool options_given(const options *o, option_id id) {
    return o->values[id].source >= OPTION_ENVIRONMENT;
}

bool options_switch(const options *o, option_id id) {
    return o->values[id].integer != 0;
}

uint64_t options_integer(const options *o, option_id id) {
    return o->values[id].integer;
}

double options_real(const options *o, option_id id) {
    return o->values[id].real;
}

const char *options_text(const options *o, option_id id) {
    return o->values[id].text;
}

const option_value *options_nth(const options *o, option_id id, size_t i) {
    for (unsigned k = 0; k < o->n_repeated; k++)
        if (o->repeated[k].id == id && i-- == 0)
            return &o->repeated[k].value;
    return NULL;
}

size_t options_count(const options *o, option_id id) {
    size_t n = 0;
    while (options_nth(o, id, n) != NULL)
        n++;
    return n;
}
