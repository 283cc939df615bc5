/* SPDX-License-Identifier: Apache-2.0 */
/* tern synth: writes a model file with random weights and the geometry of a real model. */

#include "authoring/synth.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"
#include "tools/cli/targets.h"
#include "tools/commands/commands.h"

static int list_presets(void) {
    const tern_synth_preset *preset;
    for (size_t i = 0; (preset = tern_synth_preset_at(i)) != NULL; i++)
        out_print("%-20s %s\n", preset->name, preset->description);
    return EXIT_DONE;
}

int cmd_synth(const options *o) {
    if (options_switch(o, OPT_LIST))
        return list_presets();
    const char *preset = options_text(o, OPT_PRESET);
    if (preset == NULL || o->n_operands != 1) {
        complain("synth needs --preset NAME and the file to write; `tern synth --list` shows the "
                 "presets");
        return EXIT_USAGE;
    }
    progress p = progress_start(options_switch(o, OPT_VERBOSE));
    tern_error err = {0};
    const tern_status status = tern_synth(preset, o->operands[0], targets_mode(o),
                                          options_integer(o, OPT_SEED), progress_update, &p, &err);
    progress_end(&p);
    if (status == TERN_ERR_NAME) {
        complain("%s", err.message);
        return EXIT_USAGE;
    }
    return status == TERN_OK ? EXIT_DONE : complain_error(&err);
}
