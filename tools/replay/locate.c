/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the files that a receipt names: a receipt has their names, not their places. */

#include "tools/replay/locate.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/word_list.h"
#include "receipts/rules.h"
#include "tools/cli/output.h"
#include "tools/cli/whole_file.h"
#include "tools/load/loader.h"
#include "tools/load/model_folder.h"

/* True for a readable file, or folder, which may be a model. Devices, pipes and sockets are
 * refused. */
static bool may_be_opened(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) &&
           access(path, R_OK) == 0;
}

static bool is_name(const char *name) {
    return name[0] != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/*
 * Finds the file with that name in the folder of `neighbour`, "" for the working directory; false
 * if none can be read there. A receipt gives only the name, not the folder: its author must not
 * choose which files are opened here.
 */
static bool find_beside(const char *name, const char *neighbour, char path[PATH_MAX]) {
    const int folder = (int)(file_base_name(neighbour) - neighbour);
    const int n = snprintf(path, PATH_MAX, "%.*s%s", folder, neighbour, name);
    return is_name(name) && n > 0 && n < PATH_MAX && may_be_opened(path);
}

const char *locate_recorded(const json_t *record, const char *document, char path[PATH_MAX]) {
    const char *name = file_base_name(rule_text(record, "model_info.model_path"));
    if (find_beside(name, document, path) || find_beside(name, "", path))
        return path;
    const char *shipped = loader_shipped_model();
    return shipped != NULL && strcmp(file_base_name(shipped), name) == 0 ? shipped : NULL;
}

const char *locate_model(const json_t *receipt, const options *o, const char *document,
                         char path[PATH_MAX]) {
    const char *recorded = rule_text(receipt, "model_info.model_path");
    const char *name = file_base_name(recorded);
    const char *given = options_text(o, OPT_MODEL);
    if (options_text(o, OPT_MODEL_DIR) != NULL && (given != NULL || is_name(name)))
        return model_in_folder(options_text(o, OPT_MODEL_DIR), given != NULL ? given : name);
    if (given != NULL)
        return given;
    const char *found = locate_recorded(receipt, document, path);
    if (found != NULL)
        return found;
    complain("%s: the model %s is neither beside it nor here: use -m FILE or --model-dir FOLDER",
             document, name);
    return NULL;
}

const char *locate_tokenizer(const json_t *receipt, const options *o, const char *document,
                             const char *model, char path[PATH_MAX]) {
    const char *recorded = rule_text(receipt, "model_info.tokenizer.path");
    const char *name = file_base_name(recorded);
    if (options_text(o, OPT_TOKENIZER) != NULL)
        return options_text(o, OPT_TOKENIZER);
    const bool found = find_beside(name, document, path) || find_beside(name, model, path) ||
                       find_beside(name, "", path);
    return found ? path : name; /* opening it fails with the name of the missing file */
}
