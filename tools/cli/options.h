/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CLI_OPTIONS_H
#define TERN_TOOLS_CLI_OPTIONS_H

/*
 * The command line. Parsing, environment variables, help texts and hints all come from one table of
 * commands (commands_table.c) and one of options (options_table.c). A flag takes precedence over
 * the environment, and the environment over the default.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tern/status.h"
#include "tools/cli/near_word.h"

/* X(ID, name). Each has a row in the command table and a function cmd_<name> in tools/commands/. */
#define COMMAND_LIST(X)                                                                            \
    X(RUN, run)                                                                                    \
    X(CHAT, chat)                                                                                  \
    X(SERVE, serve)                                                                                \
    X(EMBED, embed)                                                                                \
    X(LOGITS, logits)                                                                              \
    X(SCORE, score)                                                                                \
    X(BENCH, bench)                                                                                \
    X(TUNE, tune)                                                                                  \
    X(PLAN, plan)                                                                                  \
    X(INSPECT, inspect)                                                                            \
    X(KERNELS, kernels)                                                                            \
    X(COMPLETION, completion)                                                                      \
    X(SYNTH, synth)                                                                                \
    X(VERIFY_DETERMINISM, verify_determinism)                                                      \
    X(PERPLEXITY, perplexity)                                                                      \
    X(IMATRIX, imatrix)                                                                            \
    X(QUANTIZE, quantize)                                                                          \
    X(VERIFY, verify)                                                                              \
    X(REPLAY, replay)                                                                              \
    X(KEYGEN, keygen)                                                                              \
    X(TOKENIZE, tokenize)                                                                          \
    X(CROSSVAL, crossval)                                                                          \
    X(DEDUP, dedup)                                                                                \
    X(CONVERT, convert)                                                                            \
    X(CHAT_TEMPLATE, chat_template)                                                                \
    X(PULL, pull)                                                                                  \
    X(LIST, list)                                                                                  \
    X(RM, rm)

typedef enum command_id {
#define COMMAND_ENUM(id, name) COMMAND_##id,
    COMMAND_LIST(COMMAND_ENUM)
#undef COMMAND_ENUM
        COMMAND_COUNT
} command_id;

typedef enum option_id {
    OPT_MODEL,
    OPT_SERVED,
    OPT_MODELS,
    OPT_MODELS_MAX,
    OPT_MODELS_MEMORY,
    OPT_MODEL_DIR,
    OPT_PROMPT,
    OPT_TEXT,
    OPT_TOKENS,
    OPT_PROMPTS_FILE,
    OPT_POOLING,
    OPT_DIMENSIONS,
    OPT_MESSAGES,
    OPT_ROUNDS,
    OPT_MAX_TOKENS,
    OPT_CHAT_TOKENS,
    OPT_SYSTEM,
    OPT_NO_HISTORY,
    OPT_ON_FULL,
    OPT_SERVER,
    OPT_TIMEOUT,
    OPT_TLS_CA,
    OPT_HOST,
    OPT_PORT,
    OPT_UNIX,
    OPT_OLLAMA,
    OPT_API_PREFIX,
    OPT_TLS_CERT,
    OPT_TLS_KEY,
    OPT_ALIAS,
    OPT_ANY_MODEL,
    OPT_SELF_AUDIT,
    OPT_API_KEY,
    OPT_API_KEY_FILE,
    OPT_CORS,
    OPT_ALLOWED_HOST,
    OPT_PARALLEL,
    OPT_RUN_PARALLEL,
    OPT_SCHEDULES,
    OPT_QUEUE,
    OPT_KV_MEMORY,
    OPT_DRAIN,
    OPT_IDLE_TIMEOUT,
    OPT_REQUEST_TIMEOUT,
    OPT_PING,
    OPT_STALLED,
    OPT_ACCESS_LOG,
    OPT_LOG_FILE,
    OPT_LOG_FORMAT,
    OPT_LOG_PROMPTS,
    OPT_RECORD_ANSWERS,
    OPT_RECORD_LIMIT,
    OPT_TEMPERATURE,
    OPT_GREEDY,
    OPT_TOP_K,
    OPT_TOP_P,
    OPT_MIN_P,
    OPT_REPEAT_PENALTY,
    OPT_PRESENCE_PENALTY,
    OPT_FREQUENCY_PENALTY,
    OPT_REPEAT_LAST_N,
    OPT_LOGIT_BIAS,
    OPT_SEED,
    OPT_CHAT,
    OPT_CHAT_TEMPLATE,
    OPT_SPECIAL,
    OPT_IGNORE_EOS,
    OPT_NO_DRAFT,
    OPT_DRAFT_MODEL,
    OPT_JSON_SCHEMA,
    OPT_GRAMMAR,
    OPT_OPEN_OBJECTS,
    OPT_KEEP_RESPONSES,
    OPT_SLOT_SAVE_PATH,
    OPT_PULL_PATH,
    OPT_STOP,
    OPT_STOP_TOKEN,
    OPT_ECHO,
    OPT_PROMPT_CACHE,
    OPT_PROMPT_CACHE_RO,
    OPT_ALL,
    OPT_SHA256,
    OPT_OUTPUT,
    OPT_DUMP_KV,
    OPT_SPLIT,
    OPT_RECOMPUTE,
    OPT_FILE,
    OPT_STRIDE,
    OPT_WINDOWS,
    OPT_RECEIPT,
    OPT_RECORD,
    OPT_SIGN_KEY,
    OPT_REPLAY,
    OPT_PUBLIC_KEY,
    OPT_RECORDED_MODEL,
    OPT_ANSWER,
    OPT_FROM,
    OPT_WITH,
    OPT_WITH_TOKEN,
    OPT_REFERENCE,
    OPT_TOLERANCE,
    OPT_BENCH_PROMPT,
    OPT_BENCH_TOKENS,
    OPT_SERVE_TOKENS,
    OPT_DEPTH,
    OPT_REPEAT,
    OPT_DEPTHS,
    OPT_BATCH_SIZES,
    OPT_THREAD_COUNTS,
    OPT_SEQUENCES,
    OPT_ARRIVING,
    OPT_GAP,
    OPT_STAGES,
    OPT_SPARSITY,
    OPT_TOUCH_BYTES,
    OPT_TOUCH_STRIDE,
    OPT_TOUCH_HINT,
    OPT_TOUCH_HINT_RATIO,
    OPT_TOUCH_AHEAD,
    OPT_VERIFY_TOUCH,
    OPT_PRESET,
    OPT_LIST,
    OPT_NODES,
    OPT_SOCKETS,
    OPT_BUS,
    OPT_REACH,
    OPT_NETWORK,
    OPT_TOPS,
    OPT_USERS,
    OPT_NODE_MEMORY,
    OPT_MARKDOWN,
    OPT_TYPE,
    OPT_EMBEDDING_TYPE,
    OPT_OUTPUT_TYPE,
    OPT_FORCE,
    OPT_PURE,
    OPT_FORCE_TERNARY,
    OPT_TERNARIZE,
    OPT_TO,
    OPT_Q4_MAP,
    OPT_INT4_GROUP,
    OPT_IMATRIX,
    OPT_ZERO_POINTS,
    OPT_SPARSE,
    OPT_BLOCK,
    OPT_THRESHOLD,
    OPT_KEEP,
    OPT_DENSE,
    OPT_PLAN,
    OPT_BASE,
    OPT_MERGE_LORA,
    OPT_GROUPS,
    OPT_TENSOR_MAP,
    OPT_OUT_PREFIX,
    OPT_THREADS,
    OPT_AFFINITY,
    OPT_USE_AFFINITY,
    OPT_NUMA,
    OPT_RANKS,
    OPT_RANKS_LIMIT,
    OPT_REPLICATE,
    OPT_REPLICATE_LIMIT,
    OPT_FETCH_AHEAD,
    OPT_FETCH_NT,
    OPT_FETCH_NT_RATIO,
    OPT_ISA,
    OPT_DISABLE,
    OPT_DEVICE,
    OPT_LAYOUT,
    OPT_EXACT_HEAD,
    OPT_DEDUP,
    OPT_DEDUP_STRICT,
    OPT_DEDUP_POLICY,
    OPT_DEDUP_CACHE,
    OPT_DEDUP_DEBUG,
    OPT_NO_SIDECAR,
    OPT_LONG_CONTEXT,
    OPT_LORA,
    OPT_NO_TUNE,
    OPT_CACHE,
    OPT_I2S_LAYOUT,
    OPT_I2S_MAP,
    OPT_TL_TILES,
    OPT_CACHE_LIMIT,
    OPT_NO_CACHE,
    OPT_PRETRANSPOSE,
    OPT_CONTEXT,
    OPT_BATCH,
    OPT_ACTIVATION_PRECISION,
    OPT_KV,
    OPT_PRE,
    OPT_TOKENIZER,
    OPT_IDS,
    OPT_ADD_SPECIAL,
    OPT_SKIP_SPECIAL,
    OPT_PIECES,
    OPT_LINES,
    OPT_DETERMINISTIC,
    OPT_STRICT,
    OPT_REQUIRE_MODEL,
    OPT_OPTION,
    OPT_OPTIONS_FILE,
    OPT_JSON,
    OPT_NAMES,
    OPT_SUMMARY,
    OPT_VERBOSE,
    OPT_HELP,
    OPT_PRECISION, /* from here on: accepted without effect */
    OPT_GPU_LAYERS,
    OPT_FLASH_ATTENTION,
    OPT_NO_MMAP,
    OPT_MLOCK,
    OPT_COLOR,
    OPT_SIMPLE_IO,
    OPT_NO_DISPLAY_PROMPT,
    OPT_NO_WARMUP,
    OPT_LOG_DISABLE,
    OPT_COUNT
} option_id;

enum {
    OPTIONS_MAX_PLACES = 2,
    OPTIONS_MAX_OPERANDS = 100 /* for a command whose last place repeats */
};

/* The use of a file that an option or operand names (tools/cli/targets.h). */
typedef enum file_use { FILE_NONE, FILE_READ, FILE_WRITTEN, FILE_APPENDED } file_use;

typedef struct command_spec {
    const char *name;
    const char *operands; /* as usage shows them; "" if there are none */
    unsigned min_operands, max_operands;
    const char *summary;  /* one line, for `tern help` */
    const char *details;  /* paragraphs that follow, in lines of at most 100 columns; may be "" */
    const char *examples; /* lines */
    const char *alias;    /* name of the command in other programs; NULL: none */
    unsigned n_places;    /* options that operands stand for; 0: operands are the command's own */
    option_id places[OPTIONS_MAX_PLACES]; /* in this order, without those that a flag has set and
                                             that do not repeat */
    file_use files[OPTIONS_MAX_PLACES];   /* use of operands that are the command's own */
} command_spec;

typedef enum option_type {
    OPTION_SWITCH, /* no value on the command line; 1/0, true/false, yes/no, on/off in variables */
    OPTION_TEXT,
    OPTION_INTEGER, /* decimal, min <= x <= max */
    OPTION_REAL,    /* decimal, min <= x <= max */
    OPTION_CHOICE   /* one word of choices */
} option_type;

/* X(ID, title): the groups of options, in the order of help texts and pages. */
#define OPTION_GROUP_LIST(X)                                                                       \
    X(MODEL, "model")                                                                              \
    X(PROMPT, "prompt and conversation")                                                           \
    X(ANSWER, "form and end of an answer")                                                         \
    X(SAMPLING, "sampling")                                                                        \
    X(CONTEXT, "context and cache")                                                                \
    X(MEASURE, "measuring and comparing")                                                          \
    X(WRITE, "writing models")                                                                     \
    X(SPARSE, "sparse blocks")                                                                     \
    X(OUTPUT, "output")                                                                            \
    X(LISTEN, "address and access")                                                                \
    X(LIMITS, "limits")                                                                            \
    X(LOG, "log and checks")                                                                       \
    X(SERVER, "asking another server")                                                             \
    X(SPEED, "speed and precision")                                                                \
    X(MEMORY, "threads and memory")                                                                \
    X(TOUCH, "reading extra memory")                                                               \
    X(FILES, "reading and caching model files")                                                    \
    X(OTHERS, "options of other programs")

typedef enum option_group {
    GROUP_NONE, /* no option has it: a test fails */
#define GROUP_ENUM(id, title) GROUP_##id,
    OPTION_GROUP_LIST(GROUP_ENUM)
#undef GROUP_ENUM
        GROUP_COUNT
} option_group;

typedef struct option_spec {
    const char *name;     /* long flag without dashes */
    char letter;          /* short flag, or 0 */
    const char *aliases;  /* other long flags, separated by spaces; NULL: none */
    const char *argument; /* name of the value in help; NULL for switches */
    option_type type;
    option_group group;
    uint64_t min, max;     /* INTEGER */
    double low, high;      /* REAL */
    const char *choices;   /* CHOICE: words separated by spaces */
    bool any_case;         /* CHOICE: in letters of either case */
    bool or_path;          /* CHOICE: or a path, which has a '/' or '.' in it */
    const char *variables; /* older environment variables, separated by spaces; NULL: none */
    file_use file;         /* TEXT: the value names a file; FILE_NONE for folders */
    bool one_call;         /* belongs to one call: no TERN_ variable */
    bool repeats;          /* may be given several times, and each value counts */
    const char *fallback;  /* value if none is given; NULL: unset */
    const char *shown;     /* the default on pages if it is not fallback; NULL: it is */
    unsigned commands;     /* bit 1 << command_id for each command that takes it */
    unsigned often;        /* the same for commands whose long help lists it among the most used */
    const char *help;
    const char *word;   /* flag of several letters with one dash ("ngl"); NULL: none */
    const char *remark; /* why an option of another program has no effect here (it is accepted so
                           that scripts keep working); NULL: it has one */
    const char *works;  /* with a remark: the only value that has an effect; NULL: none */
} option_spec;

typedef enum option_source {
    OPTION_UNSET,
    OPTION_DEFAULT,
    OPTION_ENVIRONMENT,
    OPTION_FLAG
} option_source;

typedef struct option_value {
    option_source source;
    const char *text;
    uint64_t integer; /* SWITCH: 0 or 1 */
    double real;
} option_value;

enum { OPTIONS_MAX_REPEATED = 128 };

/* One value of an option that repeats. */
typedef struct option_repeated {
    option_id id;
    option_value value;
} option_repeated;

typedef struct options {
    command_id command;
    option_value values[OPT_COUNT];                 /* the last value of each */
    option_repeated repeated[OPTIONS_MAX_REPEATED]; /* in the order given */
    unsigned n_repeated;
    const char *operands[OPTIONS_MAX_OPERANDS];
    unsigned n_operands;
    bool model_may_be_prompt; /* it was named without -m, in a place where a prompt could follow */
} options;

const command_spec *command_describe(command_id command);
bool command_find(const char *name, command_id *command);
const char *command_nearest(const char *name); /* for a hint; NULL when nothing is near */

/* True if an option has no effect, whatever its value. */
static inline bool option_is_idle(const option_spec *spec) {
    return spec->remark != NULL && spec->works == NULL;
}

/* The row of an option in the table. */
const option_spec *option_describe(option_id id);
bool option_applies(option_id id, command_id command);

/* The heading of a group. */
const char *option_group_title(option_group group);

/* Finds the option of a command that has the long flag or alias name[n]. */
bool option_find(command_id command, const char *name, size_t n, option_id *id);

/*
 * Writes a line for each option that was given and has no effect: its flag or variable, and the
 * reason. With --verbose also for set variables of other programs that are ignored.
 */
void options_print_remarks(const options *o, FILE *out);

/* Writes the name of an option's TERN_ variable; false if it has none. */
bool option_variable(const option_spec *spec, char *name, size_t size);

/*
 * The value of the first of the option's variables that is set and not empty, and its name; NULL if
 * there is none. Names that other programs also use (PRECISION, AFFINITY: those without TERN_,
 * BITNET_ or IE_) count only with a value that the option accepts.
 */
const char *option_environment(const option_spec *spec, char name[WORD_BYTES]);

/* The default as pages show it; NULL: none. */
const char *option_default(const option_spec *spec);

/* True if an earlier row of the table has the same long flag, and so the same variable. */
bool option_is_repeated(option_id id);

/* The help text with choices, repetition and default, as all pages show it. Returns the length,
 * less than size. */
size_t option_help(const option_spec *spec, char *text, size_t size);

/* True if a text is a valid value of the option. */
bool option_accepts(const option_spec *spec, const char *text);

/* A sentence that says which flags a command's arguments stand for; "" if they are the command's
 * own. Returns the length. */
size_t help_places(const command_spec *spec, char *text, size_t size);

/* Describes the valid values of the option ("an integer from 0 to 1024"). */
void option_expectation(const option_spec *spec, char *text, size_t size);

/*
 * Reads the arguments after the command's name, then the environment, then the defaults.
 * TERN_ERR_ARG with a message of one line (without the program's name) on any error. With --help
 * anywhere the rest is not checked and OPT_HELP is set. Strings point into argv and the
 * environment.
 */
TERN_MUST_CHECK tern_status options_parse(options *o, command_id command, int argc,
                                          char *const *argv, tern_error *err);

/* Sets an option that neither a flag nor a variable has set. */
void options_default(options *o, option_id id, const char *text);

/*
 * The option that --strict refuses: one of another program that was given as a flag, asks for
 * another way of computing and is ignored here. Returns its name; NULL: none. As an environment
 * variable it is only a hint.
 */
const char *options_ignored_strictly(const options *o);

bool options_given(const options *o, option_id id); /* by flag or environment */
bool options_switch(const options *o, option_id id);
uint64_t options_integer(const options *o, option_id id);
double options_real(const options *o, option_id id);
const char *options_text(const options *o, option_id id); /* NULL when unset */

/* Value i of an option that repeats, in the order given; NULL after the last. */
const option_value *options_nth(const options *o, option_id id, size_t i);
size_t options_count(const options *o, option_id id);

/* Help texts, at most 100 columns wide. */
void help_print_program(FILE *out);
void help_print_command(FILE *out, command_id command);
void help_print_environment(FILE *out);

#endif
