/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/reformat/command.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "authoring/iebin_writer.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"
#include "tools/cli/targets.h"

/* Only lists of tensors have a name for int4. A plan is not written, so it may use int4 anyway. */
static tern_status check_int4(const options *o, const char *type, tern_error *err) {
    const bool wanted =
        (type != NULL && strcasecmp(type, "int4") == 0) || options_given(o, OPT_Q4_MAP);
    return !wanted || (convert_to_folder(o) && !convert_to_sidecar(o)) ||
                   options_switch(o, OPT_PLAN)
               ? TERN_OK
               : tern_fail(err, TERN_ERR_ARG,
                           "int4 has no number in GGUF files: --to iebin writes it");
}

tern_status convert_read_formats(const options *o, convert_formats *out, tern_error *err) {
    const char *type = options_text(o, OPT_TYPE), *group = options_text(o, OPT_INT4_GROUP);
    const tern_status status = convert_formats_read(
        type, options_switch(o, OPT_PURE), options_text(o, OPT_EMBEDDING_TYPE),
        options_text(o, OPT_OUTPUT_TYPE), options_text(o, OPT_TL_TILES), out, err);
    if (status != TERN_OK)
        return status;
    out->int4.group = strcmp(group, "row") == 0 ? SIZE_MAX : strtoul(group, NULL, 10);
    out->int4.zero_points = options_switch(o, OPT_ZERO_POINTS);
    return check_int4(o, type, err);
}

tern_status convert_read_map(const options *o, convert_q4_map *map, convert_formats *formats,
                             tern_error *err) {
    const char *path = options_text(o, OPT_Q4_MAP);
    if (path == NULL)
        return TERN_OK;
    formats->map = map;
    return convert_q4_map_read(path, map, err);
}

tern_status convert_read_importance(const options *o, tern_importance *importance,
                                    convert_formats *formats, tern_error *err) {
    const char *path = options_text(o, OPT_IMATRIX);
    if (path == NULL)
        return TERN_OK;
    formats->importance = importance;
    return tern_importance_read(path, importance, err);
}

bool convert_has_target(const options *o, const char *command) {
    char path[PATH_MAX];
    if (targets_out(o, path) != NULL || options_switch(o, OPT_PLAN))
        return true;
    complain("%s needs a second argument, OUT, to write to; --plan writes nothing", command);
    return false;
}

bool convert_to_folder(const options *o) {
    return strcmp(options_text(o, OPT_TO), "gguf") != 0;
}

bool convert_to_sidecar(const options *o) {
    return strcmp(options_text(o, OPT_TO), "sidecar") == 0;
}

tern_status convert_writer_new(const options *o, tern_gguf_writer **out, tern_error *err) {
    char folder[PATH_MAX];
    const char *path = targets_out(o, folder);
    if (!convert_to_folder(o))
        return tern_gguf_writer_new(path, targets_mode(o), out, err);
    const tern_status status = tern_iebin_writer_new(path, targets_mode(o), out, err);
    if (status == TERN_OK && convert_to_sidecar(o))
        tern_iebin_without_keys(*out);
    return status;
}

tern_format convert_main_format(const convert_job *job) {
    uint64_t weights[TERN_FORMAT_COUNT] = {0};
    tern_format most = TERN_FORMAT_F32;
    for (size_t i = 0; i < job->n; i++) {
        const convert_tensor *t = &job->tensors[i];
        weights[t->target] += strncmp(t->name, "blk.", 4) == 0 ? (uint64_t)t->rows * t->cols : 0;
        most = weights[t->target] > weights[most] ? t->target : most;
    }
    return most;
}

tern_status convert_write(convert_job *job, tern_gguf_writer **w, const options *o,
                          tern_error *err) {
    progress p = progress_start(options_switch(o, OPT_VERBOSE));
    const convert_how how = {.threads = (uint32_t)options_integer(o, OPT_THREADS),
                             .force_ternary = options_switch(o, OPT_FORCE_TERNARY),
                             .progress = progress_update,
                             .user = &p};
    const tern_status status = convert_job_write(job, w, &how, err);
    progress_end(&p);
    return status;
}
