/* SPDX-License-Identifier: Apache-2.0 */

/* The part of tern/tune.h that runs after an answer: measures choices that are missing, or that
 * runs contradict. */

#include "base/hash64.h"
#include "base/metrics.h"
#include "runtime/model/tune/file.h"
#include "runtime/model/tune_model.h"
#include "tern/tune.h"

/* A model's keys, and the choices in its folder. */
typedef struct later {
    const tern_model *m;
    tern_tune_key keys[TERN_TUNE_KEYS];
    size_t n;
    uint64_t shape;
    tern_cache_folder *folder;
    tern_tuning known;
} later;

/* ---- runs ------------------------------------------------------------------------------------ */

/* A hash of the formats and shapes of all matrices. As far as choices go, these decide what
 * decoding costs. */
static uint64_t shape_of(const tern_model *m) {
    const tern_linear *linear;
    tern_hash64 h;
    tern_hash64_start(&h);
    for (size_t i = 0; (linear = tern_model_linear(m, i)) != NULL; i++) {
        const tern_matrix one = tern_linear_one(linear);
        const uint64_t facts[] = {one.format, one.rows, one.cols};
        tern_hash64_add(&h, facts, sizeof facts);
    }
    return tern_hash64_value(&h) >> 1; /* fits into a signed number, as JSON has them */
}

/* True if measurements gave the model another kernel or layout than the table prefers. */
static bool differs_from_table(const tern_model *m, const tern_tune_key *keys, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const tern_tune_choice *choice = tern_tuning_find(&m->tuning, &keys[i]);
        const tern_format format = keys[i].format;
        const tern_layout layout =
            format == TERN_FORMAT_I2_S ? m->ternary : tern_format_layout(format);
        if (choice != NULL &&
            (choice->layout != layout ||
             choice->gemv !=
                 tern_guard_select(&m->guard, (tern_kernel_use){TERN_OP_GEMV, format, layout})))
            return true;
    }
    return false;
}

/* False: the model's choices are not kept anywhere. */
static bool open_later(const tern_model *m, later *l) {
    *l = (later){.m = m};
    if (m->tune_folder == NULL || tern_cache_folder_open(m->tune_folder, &l->folder, NULL))
        return false;
    l->n = tern_tune_keys(m, m->tune_threads, l->keys);
    l->shape = shape_of(m);
    tern_tune_load(l->folder, &m->guard, &l->known);
    return true;
}

static void close_later(later *l) {
    tern_tuning_free(&l->known);
    tern_cache_folder_close(&l->folder);
}

/* The times of the model's runs so far. */
static tern_tune_pace pace_of(const later *l) {
    const uint32_t threads = l->m->tune_threads;
    const tern_tune_pace *pace = tern_tune_pace_find(&l->known.paces, threads, l->shape);
    return pace != NULL ? *pace : (tern_tune_pace){.threads = threads, .shape = l->shape};
}

void tern_model_note_pace(const tern_model *m, size_t tokens, size_t end, double seconds) {
    later l;
    if (m == NULL || tokens < TERN_TUNE_PACE_TOKENS || end > TERN_TUNE_PACE_POSITIONS ||
        !(seconds > 0.0 && seconds < 1e3) || !open_later(m, &l))
        return;
    tern_tune_pace pace = pace_of(&l);
    if (tern_tune_pace_note(&pace, differs_from_table(m, l.keys, l.n), (uint64_t)(seconds * 1e9))) {
        tern_tuning said = {.n = 0};
        tern_tune_pace_keep(&said.paces, &pace);
        (void)tern_tune_save(l.folder, &m->guard, &said, NULL);
    }
    close_later(&l);
}

/* ---- measuring ------------------------------------------------------------------------------- */

static bool is_doubted(const later *l) {
    const tern_tune_pace pace = pace_of(l);
    uint32_t noise = 0;
    for (size_t i = 0; i < l->n; i++) {
        const tern_tune_choice *choice = tern_tuning_find(&l->known, &l->keys[i]);
        noise = choice != NULL && choice->noise > noise ? choice->noise : noise;
    }
    return tern_tune_pace_disagrees(&pace, noise);
}

/* Measures the choice of each key against the table's, and decides between the two again. */
static void measure_again(later *l, tern_tuner *tuner, tern_tune_news *news) {
    tern_tune_times times;
    for (size_t i = 0; i < l->n; i++) {
        const tern_tune_choice *before = tern_tuning_find(&l->known, &l->keys[i]);
        tern_tune_choice choice = {.key = l->keys[i]};
        if (before == NULL || !tern_tuner_measure_pair(tuner, before, &times))
            continue;
        tern_tune_decide(&times, TERN_TUNE_MARGIN, &choice);
        news->again++;
        news->changed += choice.gemv != before->gemv || choice.gemm != before->gemm;
        if (tern_tuning_set(&l->known, &choice, NULL) != TERN_OK)
            break;
    }
    if (news->again == 0)
        return;
    tern_tune_pace pace = pace_of(l);
    tern_tune_pace_renew(&pace);
    pace.rechecks++;
    tern_tune_pace_keep(&l->known.paces, &pace);
}

static tern_status measure(later *l, bool doubted, tern_tune_stop *stop, void *user,
                           tern_tune_news *news, tern_error *err) {
    const tern_model *m = l->m;
    tern_team *team = NULL;
    tern_tuner *tuner = NULL;
    tern_status status = tern_team_new_placed(m->tune_threads, m->topology, &m->places, &team, err);
    if (status == TERN_OK)
        status = tern_tuner_new(&m->guard, team, l->keys[0].stream,
                                doubted ? &tern_tune_again : &tern_tune_quick, &tuner, err);
    if (status == TERN_OK) {
        tern_tuner_prefer(tuner, m->ternary);
        tern_tuner_stop(tuner, stop, user);
        if (doubted)
            measure_again(l, tuner, news);
        news->measured = tern_tune_missing(tuner, l->keys, l->n, &l->known);
        if (news->measured + news->again > 0)
            (void)tern_tune_save(l->folder, &m->guard, &l->known, NULL);
    }
    tern_tuner_free(&tuner);
    tern_team_free(&team);
    return status;
}

tern_status tern_model_tune(const tern_model *m, tern_tune_stop *stop, void *user,
                            tern_tune_news *news, tern_error *err) {
    const double begin = tern_clock_seconds();
    tern_status status = TERN_OK;
    later l;
    if (m == NULL || news == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_model_tune needs a model and a place for news");
    *news = (tern_tune_news){.measured = 0};
    if (!open_later(m, &l))
        return TERN_OK;
    const bool doubted = is_doubted(&l);
    news->stopped = stop != NULL && stop(user);
    if (!news->stopped && (doubted || tern_tune_lacks(&l.known, l.keys, l.n)))
        status = measure(&l, doubted, stop, user, news, err);
    news->stopped = stop != NULL && stop(user);
    news->seconds = tern_clock_seconds() - begin;
    close_later(&l);
    return status;
}
