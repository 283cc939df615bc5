/* SPDX-License-Identifier: Apache-2.0 */
/* Where the files lie that a receipt names: it says what they are called, not where they are. */

#include "tools/receipt/locate.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/word_list.h"
#include "receipts/rules.h"
#include "tools/cli/output.h"
#include "tools/cli/whole_file.h"
#include "tools/model/loader.h"
#include "tools/model/model_folder.h"

/* The file of that name in the folder of `neighbour`; false where none can be read there. */
static bool find_beside(const char *name, const char *neighbour, char path[PATH_MAX]) {
    const int folder = (int)(file_base_name(neighbour) - neighbour);
    const int n = snprintf(path, PATH_MAX, "%.*s%s", folder, neighbour, name);
    return n > 0 && n < PATH_MAX && access(path, R_OK) == 0;
}

/* A path that earlier versions recorded, or a name in the working directory. */
static bool find_recorded(const char *recorded, char path[PATH_MAX]) {
    const int n = snprintf(path, PATH_MAX, "%s", recorded);
    return n > 0 && n < PATH_MAX && access(path, R_OK) == 0;
}

const char *locate_model(const json_t *receipt, const options *o, const char *document,
                         char path[PATH_MAX]) {
    const char *recorded = rule_text(receipt, "model_info.model_path");
    const char *name = file_base_name(recorded);
    const char *given = options_text(o, OPT_MODEL);
    if (options_text(o, OPT_MODEL_DIR) != NULL)
        return model_in_folder(options_text(o, OPT_MODEL_DIR), given != NULL ? given : name);
    if (given != NULL)
        return given;
    if (find_beside(name, document, path) || find_recorded(recorded, path))
        return path;
    const char *shipped = loader_shipped_model();
    if (shipped != NULL && strcmp(file_base_name(shipped), name) == 0)
        return shipped;
    complain("%s: the model %s is neither beside it nor here: use -m FILE or --model-dir FOLDER",
             document, recorded);
    return NULL;
}

const char *locate_tokenizer(const json_t *receipt, const options *o, const char *document,
                             const char *model, char path[PATH_MAX]) {
    const char *recorded = rule_text(receipt, "model_info.tokenizer.path");
    const char *name = file_base_name(recorded);
    if (options_text(o, OPT_TOKENIZER) != NULL)
        return options_text(o, OPT_TOKENIZER);
    const bool found = find_beside(name, document, path) || find_beside(name, model, path) ||
                       find_recorded(recorded, path);
    return found ? path : recorded; /* which fails with the name of what is missing */
}
