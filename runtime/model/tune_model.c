/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/tune_model.h"

#include "dispatch/cpu.h"
#include "runtime/model/tune/file.h"

uint64_t tern_tune_stream_of(const tern_model *m) {
    const tern_linear *linear;
    uint64_t bytes = 0;
    for (size_t i = 0; (linear = tern_model_linear(m, i)) != NULL; i++)
        bytes += tern_linear_bytes(linear);
    return tern_tune_stream(bytes, tern_cpu_cache_bytes());
}

size_t tern_tune_keys(const tern_model *m, uint32_t threads, tern_tune_key keys[TERN_TUNE_KEYS]) {
    const uint64_t stream = tern_tune_stream_of(m);
    tern_tuning seen = {.n = 0};
    const tern_linear *linear;
    size_t n = 0;
    for (size_t i = 0; (linear = tern_model_linear(m, i)) != NULL && n < TERN_TUNE_KEYS; i++) {
        const tern_matrix one = tern_linear_one(linear);
        const tern_tune_choice choice = {.key = tern_tune_key_of(&one, threads, stream)};
        if (linear->matrix.rows == 0 || /* all of them are other ranks' */
            (linear->form == TERN_INPUT_TOKEN && m->choice == TERN_CHOICE_ASKED) ||
            tern_layout_sparse_format(linear->matrix.layout) != TERN_FORMAT_NONE ||
            tern_matrix_is_decoded(&linear->matrix) || tern_tuning_find(&seen, &choice.key) != NULL)
            continue;
        if (tern_tuning_set(&seen, &choice, NULL) != TERN_OK)
            break;
        keys[n++] = choice.key;
    }
    tern_tuning_free(&seen);
    return n;
}

const tern_tune_choice *tern_model_tuned(const tern_model *m, const tern_linear *linear) {
    tern_matrix planned = tern_linear_one(linear); /* as it was planned when its key was made */
    if (tern_layout_sparse_format(planned.layout) != TERN_FORMAT_NONE)
        return NULL; /* there is one kernel for it */
    if (linear->form == TERN_INPUT_TOKEN)
        planned.layout = m->ternary;
    const tern_tune_key key = tern_tune_key_of(&planned, 0, 0);
    for (size_t i = 0; i < m->tuning.n; i++) {
        const tern_tune_key *known = &m->tuning.choices[i].key;
        if (known->format == key.format && known->rows == key.rows && known->cols == key.cols)
            return &m->tuning.choices[i];
    }
    return NULL;
}

/* The largest ternary matrix among the keys, which stands for all in a probe; NULL: none. */
static const tern_tune_key *largest_ternary(const tern_tune_key *keys, size_t n) {
    const tern_tune_key *largest = NULL;
    for (size_t i = 0; i < n; i++)
        if (tern_format_is_ternary(keys[i].format) &&
            tern_tune_format(keys[i].format, tern_format_layout(keys[i].format)) ==
                TERN_FORMAT_I2_S &&
            (largest == NULL || keys[i].rows * keys[i].cols > largest->rows * largest->cols))
            largest = &keys[i];
    return largest;
}

/*
 * Fewer bytes stay in a cache, and memory does not bound them: the table's layout needs no probe.
 */
static const uint64_t least_probed = UINT64_C(8) << 20;

/* The probe for the key's matrix; NULL: there is none. */
static const tern_layout_probe *probe_of(const tern_tuning *known, const tern_tune_key *key) {
    return key != NULL ? tern_layout_find(&known->layouts, key->threads, key->stream) : NULL;
}

/* The layout that the rule gives the key's matrix; the usual one without a probe. */
static tern_layout probed_layout(const tern_tuning *known, const tern_tune_key *key,
                                 uint32_t together) {
    const tern_layout_probe *probe = probe_of(known, key);
    return probe != NULL ? tern_layout_rule(probe, together) : tern_layout_usual();
}

static bool needs_probe(const tern_tune_key *key, const tern_tuning *known, uint32_t together) {
    const tern_layout_probe *probe = probe_of(known, key);
    return key != NULL && key->stream >= least_probed &&
           (probe == NULL || !tern_layout_is_enough(probe, together));
}

/* Adds the probe for the layout of this key's matrix, if it is missing. Returns 1 if it added a
 * sure one. */
static size_t probe_missing(tern_tuner *tuner, const tern_tune_key *key, uint32_t together,
                            tern_tuning *known) {
    tern_layout_probe probe;
    if (!needs_probe(key, known, together) ||
        !tern_tuner_compare(tuner, key->rows, key->cols, together, &probe))
        return 0;
    tern_layout_keep(&known->layouts, &probe);
    return tern_layout_is_sure(&probe) ? 1 : 0;
}

size_t tern_tune_missing(tern_tuner *tuner, const tern_tune_key *keys, size_t n,
                         tern_tuning *known) {
    tern_tune_times times;
    size_t added = 0;
    for (size_t i = 0; i < n; i++) {
        tern_tune_choice choice = {.key = keys[i]};
        if (tern_tuning_find(known, &keys[i]) != NULL ||
            !tern_tuner_measure(tuner, keys[i].format, keys[i].rows, keys[i].cols, &times))
            continue;
        tern_tune_decide(&times, TERN_TUNE_MARGIN, &choice);
        added += tern_tuning_set(known, &choice, NULL) == TERN_OK;
    }
    return added;
}

bool tern_tune_lacks(const tern_tuning *known, const tern_tune_key *keys, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (tern_tuning_find(known, &keys[i]) == NULL)
            return true;
    return false;
}

/*
 * Measures the layout of all keys and then, unless that is for later, the keys that have no choice.
 * Returns how many figures are new. Choices do not replace a probe for a layout that passes of
 * several tokens decide, because they weigh only a token alone and a prompt.
 */
static size_t measure(const tern_model *m, tern_team *team, const tern_tune_key *keys, size_t n,
                      bool later, tern_tuning *known) {
    const tern_tune_key *largest = largest_ternary(keys, n);
    const bool lacks = tern_tune_lacks(known, keys, n);
    const bool probe =
        needs_probe(largest, known, m->together) && (lacks || tern_layout_passes(m->together) > 0);
    tern_tuner *tuner = NULL;
    if (!(probe || (lacks && !later)) ||
        tern_tuner_new(&m->guard, team, keys[0].stream, &tern_tune_quick, &tuner, NULL) != TERN_OK)
        return 0;
    size_t added = probe_missing(tuner, largest, m->together, known);
    tern_tuner_prefer(tuner, probed_layout(known, largest, m->together));
    if (!later)
        added += tern_tune_missing(tuner, keys, n, known);
    tern_tuner_free(&tuner);
    return added;
}

/* Sets the layout of ternary matrices that have no choice to the rule's, if there is a probe. */
static void take_layout(tern_model *m, const tern_tuning *known, const tern_tune_key *key) {
    const tern_layout_probe *probe = probe_of(known, key);
    if (probe == NULL)
        return;
    m->ternary = tern_layout_rule(probe, m->together);
    tern_layout_reason(probe, m->together, m->layout_reason);
}

/* True if the choice has another layout than passes over this model's sequences want. Choices weigh
 * only a token alone and a prompt. */
static bool is_overruled(const tern_model *m, const tern_tune_choice *choice) {
    return m->layout_reason[0] != '\0' && tern_layout_passes(m->together) > 0 &&
           choice->key.format == TERN_FORMAT_I2_S && choice->layout != m->ternary;
}

/* Takes the choices of the model's keys alone: others in the file may be for matrices whose layout
 * was asked for. */
static void take_choices(tern_model *m, const tern_tuning *known, const tern_tune_key *keys,
                         size_t n) {
    for (size_t i = 0; i < n; i++) {
        const tern_tune_choice *choice = tern_tuning_find(known, &keys[i]);
        if (choice != NULL && !is_overruled(m, choice) &&
            tern_tuning_set(&m->tuning, choice, NULL) != TERN_OK)
            return;
    }
}

void tern_tune_model(tern_model *m, uint32_t threads, tern_team *team, const char *path,
                     bool later) {
    tern_tune_key keys[TERN_TUNE_KEYS];
    tern_tuning known = {.n = 0};
    tern_cache_folder *folder = NULL;
    const size_t n = tern_tune_keys(m, threads, keys);
    if (path != NULL && tern_cache_folder_open(path, &folder, NULL) == TERN_OK)
        tern_tune_load(folder, &m->guard, &known);
    if (team != NULL && measure(m, team, keys, n, later, &known) > 0 && folder != NULL)
        tern_tune_save(folder, &m->guard, &known, NULL);
    take_layout(m, &known, largest_ternary(keys, n));
    take_choices(m, &known, keys, n);
    tern_tuning_free(&known);
    tern_cache_folder_close(&folder);
}
