/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/convert/command.h"

#include "tools/cli/progress.h"

tern_status convert_read_formats(const options *o, convert_formats *out, tern_error *err) {
    return convert_formats_read(options_text(o, OPT_TYPE), options_text(o, OPT_EMBEDDING_TYPE),
                                options_text(o, OPT_OUTPUT_TYPE), options_text(o, OPT_TL_TILES),
                                out, err);
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
