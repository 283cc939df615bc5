/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/answer/sampling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tern/inspect.h"
#include "tools/cli/output.h"

static const char *const names[SAMPLING_COUNT] = {
    [SAMPLING_TEMPERATURE] = "temperature",
    [SAMPLING_TOP_K] = "top-k",
    [SAMPLING_TOP_P] = "top-p",
    [SAMPLING_MIN_P] = "min-p",
    [SAMPLING_REPETITION] = "repeat penalty",
    [SAMPLING_PRESENCE] = "presence penalty",
    [SAMPLING_FREQUENCY] = "frequency penalty",
    [SAMPLING_LAST_N] = "repeat-last-n",
};

static const char *const sources[] = {
    [SAMPLING_BY_DEFAULT] = "default",
    [SAMPLING_BY_METADATA] = "the model's metadata",
    [SAMPLING_BY_FILE] = "generation_config.json",
    [SAMPLING_BY_VARIABLE] = "environment",
    [SAMPLING_BY_FLAG] = "flag",
    [SAMPLING_BY_COMMAND] = "/set",
};

/* Defaults for a conversation if the model recommends nothing. */
static const recommended usual = {
    .has = {[SAMPLING_TEMPERATURE] = true, [SAMPLING_TOP_P] = true},
    .values = {[SAMPLING_TEMPERATURE] = 0.7, [SAMPLING_TOP_P] = 0.95},
};

/* The value at which a parameter has no effect. */
static double neutral(int p) {
    return strtod(option_describe(sampling_option((sampling_parameter)p))->fallback, NULL);
}

static void take(sampling *s, const recommended *r, sampling_source source) {
    for (int p = 0; p < SAMPLING_COUNT; p++) {
        if (r->has[p]) {
            s->values[p] = r->values[p];
            s->sources[p] = source;
        }
    }
}

/* Reports an unusable recommendation in one line and ignores it. A file that could not be read now
 * is an error, because a later run might read it and give other answers. */
static int leave_out(const options *o, const tern_error *err) {
    if (err->status == TERN_ERR_NOMEM || err->status == TERN_ERR_IO)
        return complain_error(err);
    if (options_switch(o, OPT_STRICT)) {
        complain("strict: %s", err->message);
        return EXIT_FAILED;
    }
    complain("%s: what it recommends for sampling is not used", err->message);
    return EXIT_DONE;
}

static int take_recommended(const options *o, const loaded *l, sampling *s) {
    recommended found;
    tern_error err = {0};
    int status = EXIT_DONE;
    take(s, &usual, SAMPLING_BY_DEFAULT);
    if (recommended_in_metadata(tern_model_file(l->model), &found, &err) != TERN_OK)
        status = leave_out(o, &err);
    take(s, &found, SAMPLING_BY_METADATA);
    if (status == EXIT_DONE && recommended_beside(l->info.path, &found, &err) != TERN_OK)
        status = leave_out(o, &err);
    take(s, &found, SAMPLING_BY_FILE);
    return status;
}

static void take_options(const options *o, sampling *s) {
    for (int p = 0; p < SAMPLING_COUNT; p++) {
        const option_id id = sampling_option((sampling_parameter)p);
        if (!options_given(o, id))
            continue;
        const bool whole = option_describe(id)->type == OPTION_INTEGER;
        s->values[p] = whole ? (double)options_integer(o, id) : options_real(o, id);
        s->sources[p] =
            o->values[id].source == OPTION_FLAG ? SAMPLING_BY_FLAG : SAMPLING_BY_VARIABLE;
    }
}

/* Applies --greedy unless --temp comes from a source of higher precedence. */
static int take_greedy(const options *o, sampling *s) {
    const option_source greedy = o->values[OPT_GREEDY].source;
    const option_source given = o->values[OPT_TEMPERATURE].source;
    if (!options_switch(o, OPT_GREEDY) || given > greedy)
        return EXIT_DONE;
    if (given == greedy && s->values[SAMPLING_TEMPERATURE] != 0.0) {
        complain("--greedy is --temp 0: not with another temperature");
        return EXIT_USAGE;
    }
    s->values[SAMPLING_TEMPERATURE] = 0.0;
    s->sources[SAMPLING_TEMPERATURE] =
        greedy == OPTION_FLAG ? SAMPLING_BY_FLAG : SAMPLING_BY_VARIABLE;
    return EXIT_DONE;
}

int sampling_read(const options *o, const loaded *l, bool as_recommended, sampling *out) {
    *out = (sampling){.sources = {SAMPLING_BY_DEFAULT}};
    for (int p = 0; p < SAMPLING_COUNT; p++)
        out->values[p] = neutral(p);
    const int status = as_recommended ? take_recommended(o, l, out) : EXIT_DONE;
    take_options(o, out);
    return status == EXIT_DONE ? take_greedy(o, out) : status;
}

/* The parameter of an option of a chat; SAMPLING_COUNT: none. Words may be joined by '_', as in the
 * files of models. */
static int find_parameter(const char *name) {
    char word[WORD_BYTES];
    (void)snprintf(word, sizeof word, "%s", name);
    for (char *c = word; *c != '\0'; c++)
        *c = *c == '_' ? '-' : *c;
    option_id id;
    if (!option_find(COMMAND_CHAT, word, strlen(word), &id))
        return SAMPLING_COUNT;
    int p = 0;
    while (p < SAMPLING_COUNT && sampling_option((sampling_parameter)p) != id)
        p++;
    return p;
}

bool sampling_set(sampling *s, const char *name, const char *value, sampling_parameter *which,
                  tern_error *err) {
    const int p = find_parameter(name);
    if (p == SAMPLING_COUNT) {
        (void)tern_fail(err, TERN_ERR_ARG, "%.60s is not a name that /set knows; /set lists them",
                        name);
        return false;
    }
    const option_spec *spec = option_describe(sampling_option((sampling_parameter)p));
    if (!option_accepts(spec, value)) {
        char expected[128];
        option_expectation(spec, expected, sizeof expected);
        (void)tern_fail(err, TERN_ERR_ARG, "/set %s wants %s, not '%.60s'", spec->name, expected,
                        value);
        return false;
    }
    s->values[p] = strtod(value, NULL);
    s->sources[p] = SAMPLING_BY_COMMAND;
    *which = (sampling_parameter)p;
    return true;
}

void sampling_apply(const sampling *s, tern_sampler_params *params) {
    params->temperature = (float)s->values[SAMPLING_TEMPERATURE];
    params->top_k = (uint32_t)s->values[SAMPLING_TOP_K];
    params->top_p = (float)s->values[SAMPLING_TOP_P];
    params->min_p = (float)s->values[SAMPLING_MIN_P];
    params->repetition_penalty = (float)s->values[SAMPLING_REPETITION];
    params->presence_penalty = (float)s->values[SAMPLING_PRESENCE];
    params->frequency_penalty = (float)s->values[SAMPLING_FREQUENCY];
    params->repeat_last_n = (uint32_t)s->values[SAMPLING_LAST_N];
}

/* True if a parameter has an effect: at temperature 0 those that cut off tokens have none. */
static bool counts(const sampling *s, int p) {
    const bool greedy = s->values[SAMPLING_TEMPERATURE] == 0.0;
    return p != SAMPLING_LAST_N && s->values[p] != neutral(p) &&
           !(greedy && p >= SAMPLING_TOP_K && p <= SAMPLING_MIN_P);
}

void sampling_describe(const sampling *s, char *text, size_t size) {
    size_t n = 0;
    text[0] = '\0';
    if (s->values[SAMPLING_TEMPERATURE] == 0.0)
        n = (size_t)snprintf(text, size, "greedy (%s)", sources[s->sources[SAMPLING_TEMPERATURE]]);
    for (int p = 0; p < SAMPLING_COUNT && n < size; p++) {
        if (counts(s, p)) {
            n += (size_t)snprintf(text + n, size - n, "%s%s %g (%s)", n > 0 ? ", " : "", names[p],
                                  s->values[p], sources[s->sources[p]]);
        }
    }
}

void sampling_print(const sampling *s, FILE *out) {
    for (int p = 0; p < SAMPLING_COUNT; p++)
        (void)fprintf(out, "  %-18s %-8g %s\n", names[p], s->values[p], sources[s->sources[p]]);
}
