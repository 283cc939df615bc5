/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/embed/pooling.h"

#include "tern/tern.h"
#include "tools/cli/output.h"

tern_pooling pooling_read(const options *o, const tern_model *model) {
    const char *name = options_text(o, OPT_POOLING);
    const tern_pooling said = tern_model_pooling(model);
    tern_pooling asked = said;
    tern_model_info info;
    if (name == NULL || !tern_pooling_find(name, &asked))
        return said;
    tern_model_describe(model, &info);
    if (said != TERN_POOLING_NONE && said != asked) {
        complain("%s: its pooling is '%s', --pooling %s makes other vectors", info.path,
                 tern_pooling_name(said), name);
    }
    return asked;
}
