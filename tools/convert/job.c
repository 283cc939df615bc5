/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/convert/job.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/out.h"
#include "tools/progress.h"

convert_tensor *convert_job_add(convert_job *job) {
    if (job->n == job->capacity) {
        const size_t capacity = job->capacity == 0 ? 64 : 2 * job->capacity;
        convert_tensor *grown = realloc(job->tensors, capacity * sizeof *grown);
        if (grown == NULL) {
            return NULL;
        }
        job->tensors = grown;
        job->capacity = capacity;
    }
    convert_tensor *t = &job->tensors[job->n++];
    memset(t, 0, sizeof *t);
    return t;
}

void convert_job_free(convert_job *job) {
    free(job->tensors);
    free(job->results);
    *job = (convert_job){.n = 0};
}

convert_formats convert_job_formats(const options *o) {
    return (convert_formats){.body = convert_format_find(options_text(o, OPT_TYPE)),
                             .embedding = convert_format_find(options_text(o, OPT_EMBEDDING_TYPE)),
                             .output = convert_format_find(options_text(o, OPT_OUTPUT_TYPE))};
}

tern_status convert_job_plan(convert_job *job, const convert_formats *formats, tern_error *err) {
    for (size_t i = 0; i < job->n; i++) {
        convert_tensor *t = &job->tensors[i];
        tern_status status = convert_format_choose(formats, t->name, t->source, t->rows, t->cols,
                                                   t->n_dims == 1, &t->target, err);
        if (status == TERN_OK) {
            status = tern_format_bytes(t->target, t->rows, t->cols, &t->bytes);
        }
        if (status != TERN_OK) {
            return status;
        }
        if (t->target != t->source) {
            t->as_is = NULL;
        }
    }
    return TERN_OK;
}

static void describe(const convert_job *job, tern_gguf_writer *w) {
    for (size_t i = 0; i < job->n; i++) {
        const convert_tensor *t = &job->tensors[i];
        tern_gguf_put_tensor(w, t->name, tern_format_describe(t->target)->gguf_type, t->n_dims,
                             t->ne, t->bytes);
    }
}

static tern_status write_tensors(convert_job *job, tern_gguf_writer *w, tern_team *team,
                                 const options *o, tern_error *err) {
    progress p = progress_start(options_switch(o, OPT_VERBOSE));
    uint64_t total = 0, done = 0;
    tern_status status = TERN_OK;
    for (size_t i = 0; i < job->n; i++) {
        total += job->tensors[i].bytes;
    }
    for (size_t i = 0; status == TERN_OK && i < job->n; i++) {
        const convert_tensor *t = &job->tensors[i];
        if (job->begin != NULL) {
            status = job->begin(t, job->user, err);
        }
        if (status == TERN_OK) {
            status = convert_recode(t, team, options_switch(o, OPT_FORCE_TERNARY), w,
                                    &job->results[i], err);
        }
        if (job->done != NULL) {
            job->done(t, job->user);
        }
        done += t->bytes;
        progress_update(done, total, &p);
    }
    progress_end(&p);
    return status;
}

tern_status convert_job_write(convert_job *job, tern_gguf_writer **w, const options *o,
                              tern_error *err) {
    tern_team *team = NULL;
    const uint64_t threads = options_integer(o, OPT_THREADS);
    job->results = calloc(job->n + 1, sizeof *job->results); /* + 1: never of size 0 */
    if (job->results == NULL) {
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for the results of %zu tensors", job->n);
    }
    describe(job, *w);
    tern_status status = tern_gguf_writer_begin(*w, err);
    if (status == TERN_OK) {
        status =
            tern_team_new(threads > 0 ? (uint32_t)threads : tern_processor_count(), &team, err);
    }
    if (status == TERN_OK) {
        status = write_tensors(job, *w, team, o, err);
    }
    tern_team_free(&team);
    return status == TERN_OK ? tern_gguf_writer_finish(w, err) : status;
}
