/* SPDX-License-Identifier: Apache-2.0 */
/* tern quantize: rewrites a model file with its weights in other formats. */

#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/reformat/command.h"

int cmd_quantize(const options *o) {
    if (!options_given(o, OPT_TYPE) && !options_given(o, OPT_Q4_MAP) &&
        !options_given(o, OPT_SPARSE)) {
        complain("quantize needs --type TYPE, the format of the weights, such as q8_0 or i2_s");
        return EXIT_USAGE;
    }
    return convert_has_target(o, "quantize") ? convert_model(o) : EXIT_USAGE;
}
