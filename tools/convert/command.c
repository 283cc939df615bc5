/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/convert/command.h"

#include <string.h>

#include "authoring/iebin_writer.h"
#include "tools/cli/progress.h"
#include "tools/cli/targets.h"

tern_status convert_read_formats(const options *o, convert_formats *out, tern_error *err) {
    return convert_formats_read(options_text(o, OPT_TYPE), options_text(o, OPT_EMBEDDING_TYPE),
                                options_text(o, OPT_OUTPUT_TYPE), options_text(o, OPT_TL_TILES),
                                out, err);
}

bool convert_to_folder(const options *o) {
    return strcmp(options_text(o, OPT_TO), "iebin") == 0;
}

tern_status convert_writer_new(const options *o, tern_gguf_writer **out, tern_error *err) {
    const char *path = o->operands[1];
    return convert_to_folder(o) ? tern_iebin_writer_new(path, targets_mode(o), out, err)
                                : tern_gguf_writer_new(path, targets_mode(o), out, err);
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
