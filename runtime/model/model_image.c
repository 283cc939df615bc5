/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/model/model_image.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "base/os/os.h"
#include "base/thread_signals.h"
#include "runtime/model/image/file_content.h"
#include "runtime/model/image/image.h"

/* Packing fewer bytes takes no time that anybody would notice: some 10 ms on one core. */
#define LARGE_BYTES (UINT64_C(64) << 20)

#define DEFAULT_LIMIT (UINT64_C(8) << 30)

struct tern_image_work {
    tern_cache_folder *folder;
    tern_image_key key;
    uint64_t limit;
    const uint8_t *arena;
    bool unread; /* key.content is not known yet */
    bool writing;
    atomic_bool awaited; /* the model is being freed */
    pthread_t thread;
};

/* Ends all work on images of this model. */
static void give_up(tern_model *m) {
    if (m->image_work == NULL)
        return;
    tern_cache_folder_close(&m->image_work->folder);
    free(m->image_work);
    m->image_work = NULL;
}

static bool is_wanted(const tern_model_params *params, uint64_t bytes) {
    if (params->cache == NULL || bytes == 0 || params->images == TERN_IMAGES_NONE)
        return false;
    return params->images == TERN_IMAGES_ALL || bytes >= LARGE_BYTES;
}

static uint64_t hash_plan(const tern_model *m) {
    tern_hash64 h = m->list.plan;
    const uint64_t outside[] = {tern_reading_hash(&m->reading), m->list.bytes};
    tern_hash64_add(&h, outside, sizeof outside);
    return tern_hash64_value(&h);
}

static tern_status start_work(tern_model *m, const tern_model_params *params, tern_error *err) {
    tern_image_work *work = calloc(1, sizeof *work);
    if (work == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory to cache packed weights");
    work->limit = params->cache_limit > 0 ? params->cache_limit : DEFAULT_LIMIT;
    work->key = (tern_image_key){.plan = hash_plan(m), .bytes = m->list.bytes};
    m->image_work = work;
    return tern_cache_folder_open(params->cache, &work->folder, err);
}

/*
 * Finds the number of the file's content (file_content.h): from the record of an earlier start,
 * else by reading the whole file. If no image has this plan, none can be found, so the file is read
 * after the first answers: only the name of the new image needs the number.
 */
static void find_content(tern_model *m, tern_team *team) {
    tern_image_work *work = m->image_work;
    if (tern_content_recall(work->folder, m->file, &work->key.content))
        return;
    work->unread = !tern_image_is_planned(work->folder, work->key.plan);
    if (work->unread)
        return;
    work->key.content = tern_content_read(m->file, team);
    tern_content_remember(work->folder, m->file, work->key.content);
}

void tern_model_find_image(tern_model *m, const tern_model_params *params, tern_team *team) {
    tern_error *problem = &m->loading.problem;
    const double begin = tern_clock_seconds();
    if (!is_wanted(params, m->list.bytes))
        return;
    if (start_work(m, params, problem) != TERN_OK) {
        give_up(m);
        return;
    }
    find_content(m, team);
    const double known = tern_clock_seconds();
    m->loading.content_seconds = known - begin;
    const tern_image_work *work = m->image_work;
    if (work->unread)
        return;
    tern_error missing = {.status = TERN_OK};
    const tern_status status =
        tern_image_map(work->folder, &work->key, team, &m->packed_image, &missing);
    m->loading.image_seconds = tern_clock_seconds() - known;
    if (status == TERN_OK) {
        m->weights = tern_arena_over(tern_image_arena(m->packed_image), m->list.bytes);
        m->loading.mapped = true;
        give_up(m); /* nothing is left to do */
    } else if (status == TERN_ERR_IMAGE)
        *problem = missing;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Reads the content that find_content left for later. False: there is no thread to read it, or the
 * file may have changed since it was packed. */
static bool read_content(const tern_model *m, tern_image_work *work) {
    tern_team *alone;
    if (!work->unread)
        return true;
    if (tern_team_new(1, &alone, NULL) != TERN_OK)
        return false;
    work->key.content = tern_content_read(m->file, alone);
    tern_team_free(&alone);
    if (tern_gguf_unchanged(m->file, NULL) != TERN_OK)
        return false;
    tern_content_remember(work->folder, m->file, work->key.content);
    return true;
}

static void *write_image(void *argument) {
    const tern_model *m = argument;
    tern_image_work *work = m->image_work;
    /* Run only when the processor is free, unless a caller waits already. */
    tern_os_run_idle(pthread_self(), true);
    if (atomic_load(&work->awaited))
        tern_os_run_idle(pthread_self(), false);
    if (!read_content(m, work))
        return NULL;
    /* An error is dropped: the next start tries again, and reports if the folder is unusable. */
    (void)tern_image_write(work->folder, &work->key, work->arena, work->limit, NULL);
    return NULL;
}

void tern_model_keep_image(tern_model *m) {
    tern_image_work *work = m->image_work;
    sigset_t before;
    if (work == NULL)
        return;
    work->arena = m->weights.base;
    tern_signals_block(&before); /* the program's own threads take signals */
    work->writing = pthread_create(&work->thread, NULL, write_image, m) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void tern_model_end_image(tern_model *m) {
    if (m->image_work != NULL && m->image_work->writing) {
        /* A caller waits for it now: other programs must not starve it. */
        atomic_store(&m->image_work->awaited, true);
        tern_os_run_idle(m->image_work->thread, false);
        pthread_join(m->image_work->thread, NULL);
    }
    give_up(m);
}

void tern_model_release_weights(tern_model *m) {
    tern_arena_free(&m->weights);
    tern_file_map_close(&m->packed_image);
}
