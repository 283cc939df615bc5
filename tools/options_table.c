/* SPDX-License-Identifier: Apache-2.0 */
/* The two tables of the command line: commands and options. */

#include <string.h>

#include "tools/options.h"

enum {
    RUN = 1 << COMMAND_RUN,
    LOGITS = 1 << COMMAND_LOGITS,
    BENCH = 1 << COMMAND_BENCH,
    INSPECT = 1 << COMMAND_INSPECT,
    KERNELS = 1 << COMMAND_KERNELS,
    SYNTH = 1 << COMMAND_SYNTH,
    VERIFY = 1 << COMMAND_VERIFY_DETERMINISM,
    EVALUATES = RUN | LOGITS | BENCH, /* commands that run a model */
    EVERY = (1 << COMMAND_COUNT) - 1
};

static const command_spec commands[COMMAND_COUNT] = {
    [COMMAND_RUN] =
        {"run", "", 0, 0, "generate text from a prompt",
         "Writes the generated text to standard output while it is generated. The prompt comes "
         "from\n"
         "-p, from --tokens, or from a pipe on standard input (one newline at its end is "
         "dropped).\n"
         "Without -m the small model that comes with tern answers. The same seed, model and "
         "prompt\n"
         "give the same text on every machine, whatever the instruction set or thread count.\n",
         "  tern run -p 'The capital of France is'\n"
         "  tern run -m model.gguf --chat -p 'What is 2+2?' -n 64\n"
         "  tern run -m model.gguf -p 'Once upon a time' --temp 0.8 --top-p 0.95 --seed 7\n"
         "  echo 'Dear reader,' | tern run -m model.gguf --json\n"},
    [COMMAND_LOGITS] =
        {"logits", "", 0, 0, "print, hash or save the logits of a prompt",
         "Without --output and --sha256 the ten most likely next tokens are printed. Files hold\n"
         "little-endian 32-bit floats, positions x vocabulary; --sha256 prints the hash of those\n"
         "bytes, which is the same on every instruction set, for every thread count and split.\n",
         "  tern logits -m model.gguf -p 'The capital of France is'\n"
         "  tern logits -m model.gguf --tokens 1,2,3 --all --sha256\n"
         "  tern logits -m model.gguf -p - --all --output logits.f32 < prompt.txt\n"},
    [COMMAND_BENCH] =
        {"bench", "", 0, 0, "measure prefill and decode against this machine's memory",
         "Evaluates a prompt of random tokens, then decodes. Figures are medians of the repeats.\n"
         "Reading speed of the memory is measured with the same number of threads, before and\n"
         "after; the fraction says how much of it decoding used. Random tokens depend on --seed.\n",
         "  tern bench -m model.gguf -p 512 -n 64\n"
         "  tern bench -m model.gguf -p 0 -n 128 --threads 1 --json\n"
         "  tern bench -m model.gguf -p 512 -n 64 --depth 2048 --repeat 5\n"},
    [COMMAND_INSPECT] =
        {"inspect", "MODEL", 1, 1, "show what is in a model file and whether it runs here",
         "Shows metadata, tensors, the memory that the model would take, and the kernels chosen.\n",
         "  tern inspect model.gguf\n"
         "  tern inspect model.gguf --ctx 2048 --kv f32 --json\n"},
    [COMMAND_KERNELS] = {"kernels", "", 0, 0,
                         "list every kernel, whether it runs here and which is chosen", "",
                         "  tern kernels\n"
                         "  tern kernels --isa avx2 --markdown\n"},
    [COMMAND_SYNTH] = {"synth", "[OUT]", 0, 1,
                       "write a model of a real model's geometry with random weights",
                       "The same preset and seed give the same bytes on every machine.\n",
                       "  tern synth --list\n"
                       "  tern synth --preset bitnet-2b bitnet-2b.gguf --seed 1\n"},
    [COMMAND_VERIFY_DETERMINISM] =
        {"verify-determinism", "", 0, 0, "show that a model has one answer on this machine",
         "Runs the same tokens on every instruction set of this machine, in every packed layout,\n"
         "with 1 to 3 threads, the prompt cut in several ways, alone and beside another sequence.\n"
         "Prints one hash of all keys, values and logits, or the first difference: which run, and\n"
         "the layer and operation to look at. The hash is the same on every machine.\n",
         "  tern verify-determinism\n"
         "  tern verify-determinism -m model.gguf --kv q8_0\n"},
};

static const option_spec table[OPT_COUNT] = {
    [OPT_MODEL] = {"model", 'm', NULL, "FILE", OPTION_TEXT, .variables = "BITNET_GGUF",
                   .commands = EVALUATES | VERIFY,
                   .help = "GGUF model; without it run uses the small model that comes with tern"},
    [OPT_PROMPT] = {"prompt", 'p', NULL, "TEXT", OPTION_TEXT, .one_call = true,
                    .commands = RUN | LOGITS, .help = "the prompt; - reads standard input"},
    [OPT_TOKENS] = {"tokens", 0, NULL, "IDS", OPTION_TEXT, .one_call = true,
                    .commands = RUN | LOGITS,
                    .help = "token ids such as 1,2,3 in place of a prompt; nothing is added"},
    [OPT_MAX_TOKENS] = {"max-tokens", 'n', "max-new max-new-tokens n-predict", "N", OPTION_INTEGER,
                        .max = 100000000, .fallback = "128", .commands = RUN,
                        .help = "generate at most N tokens"},
    [OPT_TEMPERATURE] = {"temp", 't', "temperature", "T", OPTION_REAL, .high = 1000.0,
                         .fallback = "0", .commands = RUN,
                         .help = "temperature; 0 takes the most likely token"},
    [OPT_TOP_K] = {"top-k", 0, NULL, "K", OPTION_INTEGER, .max = INT32_MAX, .fallback = "0",
                   .commands = RUN, .help = "sample from the K most likely tokens; 0: from all"},
    [OPT_TOP_P] = {"top-p", 0, NULL, "P", OPTION_REAL, .low = 1e-6, .high = 1.0, .fallback = "1",
                   .commands = RUN,
                   .help = "sample from the fewest tokens that together have probability P"},
    [OPT_SEED] = {"seed", 's', NULL, "S", OPTION_INTEGER, .max = UINT64_MAX,
                  .variables = "BITNET_SEED", .fallback = "42", .commands = RUN | BENCH | SYNTH,
                  .help = "seed of the random numbers"},
    [OPT_CHAT] = {"chat", 0, NULL, NULL, OPTION_SWITCH, .commands = RUN,
                  .help = "put the prompt into the model's own chat format, as the user's message"},
    [OPT_SPECIAL] = {"special", 0, NULL, NULL, OPTION_SWITCH, .commands = RUN | LOGITS,
                     .help = "recognise control tokens written in the prompt"},
    [OPT_IGNORE_EOS] = {"ignore-eos", 0, NULL, NULL, OPTION_SWITCH, .commands = RUN,
                        .help = "go on behind the end of the text"},
    [OPT_ECHO] = {"echo", 0, NULL, NULL, OPTION_SWITCH, .commands = RUN,
                  .help = "print the prompt before the generated text"},
    [OPT_ALL] = {"all", 'a', NULL, NULL, OPTION_SWITCH, .one_call = true, .commands = LOGITS,
                 .help = "all positions, not only the last one"},
    [OPT_SHA256] = {"sha256", 0, NULL, NULL, OPTION_SWITCH, .one_call = true, .commands = LOGITS,
                    .help = "print the SHA-256 of the logits"},
    [OPT_OUTPUT] = {"output", 'o', NULL, "FILE", OPTION_TEXT, .one_call = true, .commands = LOGITS,
                    .help = "save the logits"},
    [OPT_SPLIT] = {"split", 0, NULL, "N", OPTION_INTEGER, .max = INT32_MAX, .fallback = "0",
                   .commands = LOGITS,
                   .help = "feed the prompt in pieces of N tokens; 0: at once. Changes no bit"},
    [OPT_BENCH_PROMPT] = {"prompt-tokens", 'p', NULL, "N", OPTION_INTEGER, .max = 10000000,
                          .fallback = "512", .commands = BENCH,
                          .help = "tokens to prefill, at most what fits; 0 skips that measurement"},
    [OPT_BENCH_TOKENS] = {"max-tokens", 'n', "max-new max-new-tokens n-predict", "N",
                          OPTION_INTEGER, .max = 10000000, .fallback = "64", .commands = BENCH,
                          .help = "tokens to decode; 0 skips that measurement"},
    [OPT_DEPTH] = {"depth", 'd', NULL, "N", OPTION_INTEGER, .max = 10000000, .commands = BENCH,
                   .help = "decode behind N tokens of context [the prompt]; 0: an empty context"},
    [OPT_REPEAT] = {"repeat", 'r', "rounds", "N", OPTION_INTEGER, .min = 1, .max = 1000,
                    .fallback = "3", .commands = BENCH, .help = "measure N times"},
    [OPT_PRESET] = {"preset", 0, NULL, "NAME", OPTION_TEXT, .commands = SYNTH,
                    .help = "geometry to write"},
    [OPT_LIST] = {"list", 'l', NULL, NULL, OPTION_SWITCH, .one_call = true, .commands = SYNTH,
                  .help = "list the presets"},
    [OPT_MARKDOWN] = {"markdown", 0, NULL, NULL, OPTION_SWITCH, .one_call = true,
                      .commands = KERNELS, .help = "write a Markdown table"},
    [OPT_THREADS] = {"threads", 0, NULL, "N", OPTION_INTEGER, .max = 1024,
                     .variables = "RAYON_NUM_THREADS", .fallback = "0", .commands = EVALUATES,
                     .help = "threads; 0: one per core. Changes no bit of the output"},
    [OPT_ISA] = {"isa", 0, NULL, "NAME", OPTION_TEXT,
                 .commands = EVALUATES | INSPECT | KERNELS | VERIFY,
                 .help = "instruction set, see `tern kernels`; without it the best one here"},
    [OPT_DISABLE] = {"disable", 0, NULL, "NAMES", OPTION_TEXT,
                     .commands = EVALUATES | INSPECT | KERNELS | VERIFY,
                     .help = "instruction sets not to use, such as avx512vbmi,avx512"},
    [OPT_LAYOUT] = {"layout", 0, NULL, "NAME", OPTION_CHOICE,
                    .choices = "t2r16 t5r16 tl1r16 tl2r16", .fallback = "t2r16",
                    .commands = EVALUATES | INSPECT,
                    .help = "packed layout of ternary matrices; changes no bit"},
    [OPT_I2S_LAYOUT] = {"i2s-layout", 0, NULL, "ORDER", OPTION_CHOICE, .choices = "a b c d",
                        .fallback = "a", .commands = EVALUATES | INSPECT | VERIFY,
                        .help = "order of the codes in I2_S tensors, which no file tells"},
    [OPT_CONTEXT] = {"ctx", 'c', "ctx-size context", "N", OPTION_INTEGER, .max = UINT32_MAX,
                     .fallback = "0", .commands = EVALUATES | INSPECT,
                     .help = "positions of context; 0: as trained, at most 4096"},
    [OPT_BATCH] = {"batch", 'b', NULL, "N", OPTION_INTEGER, .max = 4096, .fallback = "0",
                   .commands = EVALUATES,
                   .help = "tokens of a prompt handled in one pass; 0: 128. Changes no bit"},
    [OPT_KV] = {"kv", 0, NULL, "TYPE", OPTION_CHOICE, .choices = "f32 f16 q8_0", .fallback = "f32",
                .commands = EVALUATES | INSPECT | VERIFY, .help = "numbers in the key/value cache"},
    [OPT_PRE] = {"pre", 0, NULL, "NAME", OPTION_TEXT, .commands = EVALUATES | INSPECT | VERIFY,
                 .help = "pre-tokenizer, in place of the one that the file names"},
    [OPT_DETERMINISTIC] = {"deterministic", 0, NULL, NULL, OPTION_SWITCH,
                           .variables = "BITNET_DETERMINISTIC", .commands = RUN | BENCH,
                           .help = "record that the output must be repeatable; it always is"},
    [OPT_STRICT] = {"strict", 0, NULL, NULL, OPTION_SWITCH, .variables = "BITNET_STRICT_MODE",
                    .commands = RUN | BENCH,
                    .help = "fail if any weight was expanded to floats while generating"},
    [OPT_REQUIRE_MODEL] = {"require-model", 0, NULL, NULL, OPTION_SWITCH,
                           .variables = "IE_REQUIRE_MODEL", .commands = RUN,
                           .help = "fail without -m, do not fall back to the small model"},
    [OPT_JSON] = {"json", 0, NULL, NULL, OPTION_SWITCH, .commands = RUN | BENCH | INSPECT | KERNELS,
                  .help = "print one line of JSON and nothing else"},
    [OPT_VERBOSE] = {"verbose", 'v', NULL, NULL, OPTION_SWITCH, .commands = RUN | BENCH | SYNTH,
                     .help = "metrics and progress on standard error even if it is no terminal"},
    [OPT_HELP] = {"help", 'h', NULL, NULL, OPTION_SWITCH, .one_call = true, .commands = EVERY,
                  .help = "this text"},
};

const command_spec *command_describe(command_id command) {
    return &commands[command];
}

const option_spec *option_describe(option_id id) {
    return &table[id];
}

bool option_applies(option_id id, command_id command) {
    return (table[id].commands >> command & 1U) != 0;
}

bool command_find(const char *name, command_id *command) {
    for (int i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            *command = (command_id)i;
            return true;
        }
    }
    return false;
}
