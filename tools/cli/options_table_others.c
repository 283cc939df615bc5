/* SPDX-License-Identifier: Apache-2.0 */
/* Options of other programs, which are accepted and have little or no effect. */

#include "tools/cli/options_commands.h"

#define AT(id) ((id)-OPT_PRECISION)

static const option_spec table[AT(OPT_COUNT)] = {
    [AT(OPT_PRECISION)] =
        {"precision", 0, NULL, "TYPE", OPTION_CHOICE, GROUP_SPEED,
         .choices = "auto fp32 fp16 bf16 int8w int4w int2w ternary",
         .variables = "IE_PRECISION PRECISION", .commands = EVALUATES | VERIFY | INSPECT,
         .help = "fp32: products of floats, as with --activation-precision fp32. Other values have "
                 "no effect: the file decides how weights are stored",
         .remark = "the model's file decides how its weights are stored", .works = "fp32"},
    [AT(OPT_GPU_LAYERS)] = {"n-gpu-layers", 0, "gpu-layers", "N", OPTION_INTEGER, GROUP_OTHERS,
                            .max = INT32_MAX, .one_call = true, .commands = EVALUATES,
                            .help = "layers on a graphics processor", .word = "ngl",
                            .remark = "--device cuda takes all layers"},
    [AT(OPT_FLASH_ATTENTION)] = {"flash-attn", 0, NULL, "WHEN", OPTION_CHOICE, GROUP_OTHERS,
                                 .choices = "on off auto", .one_call = true, .commands = EVALUATES,
                                 .help = "attention in one pass over the cache", .word = "fa",
                                 .remark = "attention always goes over the cache in chunks"},
    [AT(OPT_NO_MMAP)] = {"no-mmap", 0, NULL, NULL, OPTION_SWITCH, GROUP_OTHERS, .one_call = true,
                         .commands = EVALUATES, .help = "read the file instead of mapping it",
                         .remark = "files are always mapped"},
    [AT(OPT_MLOCK)] = {"mlock", 0, NULL, NULL, OPTION_SWITCH, GROUP_OTHERS, .one_call = true,
                       .commands = EVALUATES, .help = "keep the model in memory",
                       .remark = "memory is not locked"},
    [AT(OPT_COLOR)] = {"color", 0, NULL, NULL, OPTION_SWITCH, GROUP_OTHERS, .one_call = true,
                       .commands = ANSWERS, .help = "colour the prompt",
                       .remark = "texts have no colour"},
    [AT(OPT_SIMPLE_IO)] = {"simple-io", 0, NULL, NULL, OPTION_SWITCH, GROUP_OTHERS,
                           .one_call = true, .commands = ANSWERS, .help = "plain input and output",
                           .remark = "pipes are always read and written plainly"},
    [AT(OPT_NO_DISPLAY_PROMPT)] = {"no-display-prompt", 0, NULL, NULL, OPTION_SWITCH, GROUP_OTHERS,
                                   .one_call = true, .commands = ANSWERS,
                                   .help = "do not print the prompt",
                                   .remark = "the prompt is printed only with --echo"},
    [AT(OPT_NO_WARMUP)] = {"no-warmup", 0, NULL, NULL, OPTION_SWITCH, GROUP_OTHERS,
                           .one_call = true, .commands = EVALUATES,
                           .help = "do not run the model once beforehand",
                           .remark = "there is no such run"},
    [AT(OPT_LOG_DISABLE)] = {"log-disable", 0, NULL, NULL, OPTION_SWITCH, GROUP_OTHERS,
                             .one_call = true, .commands = EVALUATES, .help = "write no log",
                             .remark = "there is no log"},
};

const option_spec *option_describe_other(option_id id) {
    return &table[AT(id)];
}
