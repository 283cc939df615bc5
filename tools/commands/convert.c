/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tern convert: the folder of a Hugging Face model as a GGUF file, or any model as an IEBIN folder.
 */

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "authoring/convert/gguf_source.h"
#include "authoring/convert/hf_metadata.h"
#include "authoring/convert/hf_tensors.h"
#include "authoring/convert/peft.h"
#include "tools/answer/recommended.h"
#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/hub/hub_cache.h"
#include "tools/reformat/command.h"

typedef struct conversion {
    hf_config config;
    hf_files files;
    hf_tensors tensors;
    convert_job job;
    convert_formats formats;
    convert_q4_map map;
    tern_importance importance;
    const char *remark; /* about the tokenizer, or NULL */
} conversion;

static void warn_skipped(const safetensors_tensor *t) {
    complain("%s: tensor %.200s (%s) has no place in the model and is left out", t->file, t->name,
             safetensors_type_name(t->type));
}

static tern_status prepare(const convert_tensor *t, void *user, tern_error *err) {
    const conversion *c = user;
    hf_source *s = &c->tensors.sources[t - c->job.tensors]; /* one per tensor, in order */
    return hf_source_prepare(s, c->config.scale, err);
}

static void drop_source(const convert_tensor *t, void *user) {
    (void)user;
    hf_source_drop(t->context);
}

/* Copies size bytes, as far as they fit. */
static void copy_name(const char *begin, size_t n, char *name, size_t size) {
    n = n < size ? n : size - 1;
    memcpy(name, begin, n);
    name[n] = '\0';
}

/* Returns where the last part of path[*end] begins; *end becomes the end without slashes. */
static size_t last_part(const char *path, size_t *end) {
    while (*end > 1 && path[*end - 1] == '/')
        (*end)--;
    size_t begin = *end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    return begin;
}

/*
 * Copies the model's name: the last part of the folder's path, or of a snapshot of the Hub
 * (models--OWNER--NAME/snapshots/COMMIT) the name of the repository.
 */
static void folder_name(const char *path, char *name, size_t size) {
    size_t end = strlen(path);
    const size_t begin = last_part(path, &end);
    copy_name(path + begin, end - begin, name, size);
    if (!hub_is_commit(name))
        return;
    size_t above = begin;
    const size_t snapshots = last_part(path, &above);
    size_t top = snapshots;
    const size_t repository = last_part(path, &top);
    static const char mark[] = "models--";
    if (top - repository <= strlen(mark) || memcmp(path + repository, mark, strlen(mark)) != 0)
        return;
    size_t own = top;
    while (own > repository && !(path[own - 1] == '-' && path[own - 2] == '-'))
        own--;
    copy_name(path + own, top - own, name, size);
}

static tern_status read_folder(conversion *c, const options *o, tern_error *err) {
    const char *folder = o->operands[0];
    if (options_given(o, OPT_SPARSE) || convert_to_sidecar(o))
        return tern_fail(err, TERN_ERR_ARG,
                         "%s: --sparse takes a model file or an IEBIN folder; convert the folder "
                         "of Hugging Face first",
                         folder);
    tern_status status = convert_read_formats(o, &c->formats, err);
    if (status == TERN_OK)
        status = convert_read_map(o, &c->map, &c->formats, err);
    if (status == TERN_OK)
        status = convert_read_importance(o, &c->importance, &c->formats, err);
    if (status == TERN_OK)
        status = hf_config_read(folder, &c->config, err);
    if (status != TERN_OK)
        return status;
    if (c->config.unknown[0] != '\0')
        complain("%s/config.json: not known, and left out: %s", folder, c->config.unknown);
    if (options_switch(o, OPT_TERNARIZE) && c->config.weights == HF_WEIGHTS_TERNARY) {
        return tern_fail(err, TERN_ERR_ARG, "%s: is ternary already: leave --ternarize out",
                         folder);
    }
    if (options_switch(o, OPT_TERNARIZE) && c->config.n_expert > 0)
        return tern_fail(err, TERN_ERR_ARG, "%s: --ternarize of experts is not supported", folder);
    if (options_switch(o, OPT_TERNARIZE))
        c->config.weights = HF_WEIGHTS_MASTER;
    status = hf_files_open(folder, &c->files, err);
    if (status == TERN_OK)
        status = hf_tensors_add(&c->config, &c->files, &c->tensors, &c->job, warn_skipped, err);
    return status == TERN_OK ? convert_job_plan(&c->job, &c->formats, err) : status;
}

/*
 * Puts the recommended sampling for tern chat; an unusable recommendation is reported and left out.
 */
static tern_status put_recommended(tern_gguf_writer *w, const char *folder, tern_error *err) {
    recommended found;
    tern_error problem = {0};
    const tern_status status = recommended_in_folder(folder, &found, &problem);
    if (status == TERN_ERR_NOMEM || status == TERN_ERR_IO)
        return tern_fail(err, status, "%s", problem.message);
    if (status != TERN_OK)
        complain("%s: left out", problem.message);
    recommended_put(&found, w);
    return TERN_OK;
}

static tern_status convert(conversion *c, const options *o, tern_error *err) {
    char name[256];
    tern_gguf_writer *w = NULL;
    tern_status status = read_folder(c, o, err);
    if (options_switch(o, OPT_PLAN))
        return status;
    if (status == TERN_OK)
        status = convert_writer_new(o, &w, err);
    if (status == TERN_OK) {
        folder_name(o->operands[0], name, sizeof name);
        hf_metadata_put(w, &c->config, name,
                        convert_file_type(&c->formats, convert_main_format(&c->job)));
        status = put_recommended(w, o->operands[0], err);
    }
    if (status == TERN_OK)
        status = hf_tokenizer_put(w, o->operands[0], c->config.n_vocab, &c->remark, err);
    if (status == TERN_OK) {
        c->job.begin = prepare;
        c->job.done = drop_source;
        c->job.user = c;
        status = convert_write(&c->job, &w, o, err);
    }
    tern_gguf_writer_abort(&w);
    return status;
}

/* True if the source can be converted; for a file a complaint says which command to use. */
static bool check_source(const char *path, bool to_folder) {
    struct stat info;
    hub_name hub;
    if (stat(path, &info) != 0 && hub_name_read(path, &hub)) {
        complain(
            "%s: neither a folder nor fetched; `tern pull %s` fetches it from the Hugging Face "
            "Hub",
            path, hub.repo);
    } else if (stat(path, &info) != 0) {
        complain("%s: %s", path, strerror(errno));
    } else if (!S_ISDIR(info.st_mode) && !to_folder) {
        complain("%s: is a file; convert takes the folder of a Hugging Face model, and `tern "
                 "quantize` takes GGUF files",
                 path);
    } else {
        return true;
    }
    return false;
}

static int convert_source(const options *o) {
    if (options_given(o, OPT_DENSE))
        return convert_dense(o);
    const bool takes_file =
        convert_to_folder(o) || options_switch(o, OPT_PLAN) || options_count(o, OPT_MERGE_LORA) > 0;
    if (!check_source(o->operands[0], takes_file))
        return EXIT_FAILED;
    if (peft_is_folder(o->operands[0]))
        return convert_adapter(o);
    if (convert_is_model(o->operands[0]))
        return convert_model(o);
    conversion c = {.files = {.n = 0}};
    tern_error err = {0};
    const tern_status status = convert(&c, o, &err);
    const int done = status != TERN_OK             ? complain_error(&err)
                     : options_switch(o, OPT_PLAN) ? convert_plan_report(&c.job, o)
                                                   : convert_report(&c.job, o);
    if (status == TERN_OK && c.remark != NULL)
        complain("%s: %s", o->operands[0], c.remark);
    convert_q4_map_free(&c.map);
    tern_importance_free(&c.importance);
    convert_job_free(&c.job);
    hf_tensors_free(&c.tensors);
    hf_files_close(&c.files);
    return done;
}

int cmd_convert(const options *o) {
    static char folder[PATH_MAX];
    hub_name hub;
    options found = *o;
    if (!convert_has_target(o, "convert"))
        return EXIT_USAGE;
    if (access(o->operands[0], F_OK) != 0 && hub_name_read(o->operands[0], &hub) &&
        hub_cache_find_folder(&hub, folder))
        found.operands[0] = folder;
    return convert_source(&found);
}
