/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/targets.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "authoring/iebin_writer.h"
#include "base/file_map.h"
#include "tern/gguf.h"
#include "tools/cli/output.h"

/* A file that the command line names. */
typedef struct named_file {
    const char *path;
    char origin[WORD_BYTES + 2]; /* "--output", or the operand's name in the usage line */
    file_use use;
} named_file;

enum { FILES_MAX = OPT_COUNT + OPTIONS_MAX_OPERANDS + 1 };

const char *targets_out(const options *o, char path[PATH_MAX]) {
    const char *to = option_applies(OPT_TO, o->command) ? options_text(o, OPT_TO) : "";
    if (o->n_operands > 1)
        return o->operands[1];
    return o->n_operands == 1 && strcmp(to, "sidecar") == 0 &&
                   tern_gguf_sidecar_path(o->operands[0], path, PATH_MAX)
               ? path
               : NULL;
}

static size_t list_files(const options *o, named_file files[FILES_MAX], char out[PATH_MAX]) {
    const command_spec *command = command_describe(o->command);
    const char *names = command->operands;
    size_t n = 0;
    const bool plan = option_applies(OPT_PLAN, o->command) && options_switch(o, OPT_PLAN);
    for (unsigned i = 0; i < o->n_operands && !(plan && command->files[i] == FILE_WRITTEN); i++) {
        files[n].path = o->operands[i];
        files[n].use = command->files[i];
        n += word_next(&names, files[n].origin) && files[n].use != FILE_NONE;
    }
    if (!plan && o->n_operands == 1 && targets_out(o, out) != NULL)
        files[n++] = (named_file){.path = out, .origin = "--to", .use = FILE_WRITTEN};
    for (int id = 0; id < OPT_COUNT; id++) {
        const option_spec *spec = option_describe((option_id)id);
        const char *path = options_text(o, (option_id)id);
        if (spec->file != FILE_NONE && path != NULL) {
            files[n] = (named_file){.path = path, .use = spec->file};
            (void)snprintf(files[n++].origin, sizeof files->origin, "--%s", spec->name);
        }
    }
    return n;
}

/* True if both paths lead to the same file. */
static bool same_file(const char *a, const char *b) {
    struct stat x, y;
    return strcmp(a, b) == 0 ||
           (stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

/* True if `path` is part of a model's folder: a file directly in it that is not a GGUF file. */
static bool is_part(const char *path, const char *folder) {
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(path, '.');
    char parent[PATH_MAX] = ".";
    struct stat info;
    if (stat(folder, &info) != 0 || !S_ISDIR(info.st_mode) ||
        (dot != NULL && strcmp(dot, ".gguf") == 0))
        return false;
    if (slash != NULL && (size_t)(slash - path) + 2 > sizeof parent)
        return false; /* no file can have such a long name */
    if (slash != NULL)
        (void)snprintf(parent, sizeof parent, "%.*s", (int)(slash - path) + 1, path);
    return same_file(parent, folder);
}

/* True if the command does not read the file at files[at].path; false after a complaint. */
static bool check_inputs(const named_file *files, size_t n, size_t at) {
    const named_file *target = &files[at];
    struct stat info;
    const bool there = stat(target->path, &info) == 0;
    bool read = there && tern_file_is_mapped(&info);
    for (size_t i = 0; i < n && !read; i++) {
        const named_file *other = &files[i];
        if (other->use == FILE_WRITTEN && i < at && same_file(other->path, target->path)) {
            complain("%s: is named twice, by %s and %s", target->path, other->origin,
                     target->origin);
            return false;
        }
        read = there && other->use == FILE_READ &&
               (same_file(other->path, target->path) || is_part(target->path, other->path));
    }
    if (read)
        complain("%s: is read by this command, which never replaces what it reads", target->path);
    return !read;
}

static int check_target(const options *o, const char *path) {
    tern_out_file *file = NULL;
    tern_error err = {0};
    const tern_status status = tern_out_file_create(path, targets_mode(o), &file, &err);
    tern_out_file_discard(&file);
    if (status == TERN_ERR_EXISTS) {
        complain("%s%s", err.message,
                 option_applies(OPT_FORCE, o->command) ? "; --force replaces it"
                                                       : ", and is never replaced");
        return EXIT_USAGE;
    }
    return status == TERN_OK ? EXIT_DONE : complain_error(&err);
}

/* True if the command writes a folder, in which only known files are replaced. */
static bool is_folder(const options *o) {
    const char *to = option_applies(OPT_TO, o->command) ? options_text(o, OPT_TO) : NULL;
    return o->command == COMMAND_DEDUP || (to != NULL && strcmp(to, "gguf") != 0);
}

/* Checks the files in an existing folder; a missing folder is made later. */
static int check_folder(const options *o, const char *folder) {
    struct stat info;
    int status = EXIT_DONE;
    if (stat(folder, &info) != 0)
        return EXIT_DONE;
    if (!S_ISDIR(info.st_mode)) {
        if (o->command == COMMAND_DEDUP)
            complain("%s: is a file; dedup writes a folder", folder);
        else
            complain("%s: is a file; --to %s writes a folder", folder, options_text(o, OPT_TO));
        return EXIT_USAGE;
    }
    for (size_t i = 0; status == EXIT_DONE && i < TERN_IEBIN_FILES; i++) {
        char path[PATH_MAX];
        if (snprintf(path, sizeof path, "%s/%s", folder, tern_iebin_files[i]) < (int)sizeof path)
            status = check_target(o, path);
    }
    return status;
}

int targets_check(const options *o) {
    named_file files[FILES_MAX];
    char out[PATH_MAX];
    const size_t n = list_files(o, files, out);
    for (size_t i = 0; i < n; i++) {
        if (files[i].path[0] == '\0') {
            complain("%s: the name of the file is empty", files[i].origin);
            return EXIT_USAGE;
        }
    }
    int status = EXIT_DONE;
    for (size_t i = 0; status == EXIT_DONE && i < n; i++) {
        const bool written = files[i].use == FILE_WRITTEN;
        if ((written || files[i].use == FILE_APPENDED) && !check_inputs(files, n, i))
            status = EXIT_USAGE;
        else if (written)
            status = is_folder(o) ? check_folder(o, files[i].path) : check_target(o, files[i].path);
    }
    return status;
}

tern_out_mode targets_mode(const options *o) {
    return options_switch(o, OPT_FORCE) ? TERN_OUT_REPLACE : TERN_OUT_NEW;
}
