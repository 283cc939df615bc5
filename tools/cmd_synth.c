/* SPDX-License-Identifier: Apache-2.0 */
/* tern synth: a model file with random weights in a real model's geometry. */

#include <stdio.h>

#include "runtime/metrics.h"
#include "runtime/synth.h"
#include "tools/commands.h"
#include "tools/out.h"

typedef struct progress_state {
    double begin, printed; /* seconds */
    bool shown;
} progress_state;

static int list_presets(void) {
    const tern_synth_preset *preset;
    for (size_t i = 0; (preset = tern_synth_preset_at(i)) != NULL; i++) {
        out_print("%-20s %s\n", preset->name, preset->description);
    }
    return EXIT_DONE;
}

/* A line that overwrites itself, ten times a second at most. */
static void on_progress(uint64_t done, uint64_t total, void *user) {
    progress_state *p = user;
    const double now = tern_clock_seconds();
    if (!p->shown || (now - p->printed < 0.1 && done < total)) {
        return;
    }
    p->printed = now;
    const double share = total > 0 ? (double)done / (double)total : 1.0;
    const double speed = now > p->begin ? (double)done / (now - p->begin) : 0.0;
    (void)fprintf(stderr, "\r%5.1f %%  %.1f of %.1f MiB  %.0f MB/s ", 100.0 * share,
                  (double)done / 1048576.0, (double)total / 1048576.0, speed * 1e-6);
}

int cmd_synth(const options *o) {
    if (options_switch(o, OPT_LIST)) {
        return list_presets();
    }
    const char *preset = options_text(o, OPT_PRESET);
    if (preset == NULL || o->n_operands != 1) {
        complain("synth needs --preset NAME and the file to write; `tern synth --list` shows the "
                 "presets");
        return EXIT_USAGE;
    }
    progress_state p = {.begin = tern_clock_seconds(),
                        .shown = wants_remarks(options_switch(o, OPT_VERBOSE))};
    tern_error err = {0};
    const tern_status status =
        tern_synth(preset, o->operands[0], options_integer(o, OPT_SEED), on_progress, &p, &err);
    if (p.shown) {
        (void)fputc('\n', stderr);
    }
    if (status == TERN_ERR_ARG) {
        complain("%s", err.message);
        return EXIT_USAGE;
    }
    return status == TERN_OK ? EXIT_DONE : complain_error(&err);
}
