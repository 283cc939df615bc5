/* SPDX-License-Identifier: Apache-2.0 */
/* Options of commands that measure, or that write models or their results. */

#include "authoring/convert/mixture.h"
#include "tern/kernels.h"
#include "tools/cli/options_commands.h"

#define AT(id) ((id)-OPT_ALL)

static const option_spec table[AT(OPT_THREADS)] = {
    [AT(OPT_ALL)] = {"all", 'a', NULL, NULL, OPTION_SWITCH, GROUP_OUTPUT, .one_call = true,
                     .commands = LOGITS, .often = EVERY,
                     .help = "logits of all positions, not only the last one"},
    [AT(OPT_SHA256)] = {"sha256", 0, NULL, NULL, OPTION_SWITCH, GROUP_OUTPUT, .one_call = true,
                        .commands = LOGITS, .often = EVERY,
                        .help = "print the SHA-256 of the logits"},
    [AT(OPT_OUTPUT)] =
        {"output", 'o', NULL, "FILE", OPTION_TEXT, GROUP_OUTPUT, .file = FILE_WRITTEN,
         .one_call = true, .commands = LOGITS | IMATRIX | EMBED, .often = EVERY,
         .help = "save the logits (embed: the vectors, as an array if the name ends in .npy; "
                 "imatrix: the importance, in the older format if it ends in .dat)"},
    [AT(OPT_DUMP_KV)] = {"dump-kv", 0, NULL, "FILE", OPTION_TEXT, GROUP_OUTPUT,
                         .file = FILE_WRITTEN, .one_call = true, .commands = LOGITS,
                         .help = "save keys and values as floats, ordered by layer, keys before "
                                 "values, key/value head, position, head dimension"},
    [AT(OPT_SPLIT)] = {"split", 0, NULL, "N", OPTION_INTEGER, GROUP_PROMPT, .max = INT32_MAX,
                       .fallback = "0", .commands = LOGITS,
                       .help =
                           "feed the prompt in pieces of N tokens; 0: all at once. Changes no bit"},
    [AT(OPT_RECOMPUTE)] =
        {"recompute", 0, NULL, NULL, OPTION_SWITCH, GROUP_PROMPT, .one_call = true,
         .commands = LOGITS,
         .help =
             "compute every position from the first token on, without the cache. Changes no bit"},
    [AT(OPT_FILE)] = {"file", 'f', NULL, "FILE", OPTION_TEXT, GROUP_PROMPT, .file = FILE_READ,
                      .one_call = true,
                      .commands = RUN | LOGITS | SCORE | PERPLEXITY | IMATRIX | TOKENIZE | BENCH,
                      .often = LOGITS | PERPLEXITY | IMATRIX | TOKENIZE,
                      .help = "read the text or prompt from FILE; - reads standard input (bench: "
                              "instead of random tokens)"},
    [AT(OPT_STRIDE)] =
        {"stride", 0, "ppl-stride", "N", OPTION_INTEGER, GROUP_MEASURE, .max = UINT32_MAX,
         .fallback = "0", .commands = PERPLEXITY,
         .help = "tokens from the start of one window to the next; 0: windows do not overlap"},
    [AT(OPT_WINDOWS)] = {"windows", 0, "chunks", "N", OPTION_INTEGER, GROUP_MEASURE,
                         .max = UINT32_MAX, .fallback = "0", .commands = PERPLEXITY | IMATRIX,
                         .often = EVERY, .help = "take at most N windows; 0: all"},
    [AT(OPT_RECEIPT)] = {"receipt", 0, NULL, "FILE", OPTION_TEXT, GROUP_OUTPUT,
                         .file = FILE_WRITTEN, .one_call = true, .commands = RUN | BENCH,
                         .help = "test the run and write a receipt of it, for tern verify"},
    [AT(OPT_RECORD)] = {"record", 0, NULL, "FILE", OPTION_TEXT, GROUP_OUTPUT, .file = FILE_WRITTEN,
                        .one_call = true, .commands = BENCH | PERPLEXITY,
                        .help = "write every measured sample, with model and machine"},
    [AT(OPT_SIGN_KEY)] = {"sign-key", 0, NULL, "FILE", OPTION_TEXT, GROUP_OUTPUT, .file = FILE_READ,
                          .commands = RUN | BENCH | PERPLEXITY,
                          .help = "sign the receipt or record with this secret key (tern keygen)"},
    [AT(OPT_REPLAY)] = {"replay", 0, NULL, NULL, OPTION_SWITCH, GROUP_MEASURE, .one_call = true,
                        .commands = CHECKS, .often = EVERY,
                        .help = "repeat the run and compare tokens and logits, bit for bit"},
    [AT(OPT_PUBLIC_KEY)] = {"public-key", 0, NULL, "FILE", OPTION_TEXT, GROUP_MEASURE,
                            .file = FILE_READ, .commands = CHECKS, .often = EVERY,
                            .help = "require a signature by the key in this file"},
    [AT(OPT_RECORDED_MODEL)] = {"recorded-model", 0, NULL, "FILE", OPTION_TEXT, GROUP_MODEL,
                                .file = FILE_READ, .one_call = true, .commands = REPLAY,
                                .often = EVERY,
                                .help = "with -m OTHER, the model that was recorded, where it is "
                                        "neither beside the recording nor here"},
    [AT(OPT_ANSWER)] = {"answer", 0, NULL, "N", OPTION_INTEGER, GROUP_MEASURE, .max = UINT32_MAX,
                        .one_call = true, .commands = REPLAY, .often = EVERY,
                        .help = "ask only for answer N again; the first one is 0"},
    [AT(OPT_FROM)] = {"from", 0, NULL, "TOKEN", OPTION_INTEGER, GROUP_MEASURE, .max = UINT32_MAX,
                      .one_call = true, .commands = REPLAY, .often = EVERY,
                      .help = "print answer N with its first TOKEN tokens kept and others after "
                              "them"},
    [AT(OPT_WITH)] = {"with", 0, NULL, "TEXT", OPTION_TEXT, GROUP_MEASURE, .one_call = true,
                      .commands = REPLAY, .often = EVERY,
                      .help = "put this text in place of the token there, and go on after it"},
    [AT(OPT_WITH_TOKEN)] = {"with-token", 0, NULL, "ID", OPTION_INTEGER, GROUP_MEASURE,
                            .max = INT32_MAX, .one_call = true, .commands = REPLAY, .often = EVERY,
                            .help = "put this token there instead of a text"},
    [AT(OPT_REFERENCE)] = {"reference", 0, NULL, "FILE", OPTION_TEXT, GROUP_MEASURE,
                           .file = FILE_READ, .one_call = true, .commands = CROSSVAL,
                           .often = EVERY, .help = "another engine's answers, as JSON"},
    [AT(OPT_TOLERANCE)] = {"tolerance", 0, NULL, "C", OPTION_REAL, GROUP_MEASURE, .low = 0.0,
                           .high = 1.0, .fallback = "0.99", .commands = CROSSVAL, .often = EVERY,
                           .help = "lowest accepted mean cosine of logits, keys and values"},
    [AT(OPT_BENCH_PROMPT)] =
        {"prompt-tokens", 'p', NULL, "N", OPTION_INTEGER, GROUP_MEASURE, .max = 10000000,
         .fallback = "512", .commands = BENCH, .often = EVERY,
         .help = "tokens to prefill, at most what fits the context; 0 skips this measurement"},
    [AT(OPT_BENCH_TOKENS)] = {"max-tokens", 'n', "max-new max-new-tokens n-predict", "N",
                              OPTION_INTEGER, GROUP_MEASURE, .max = 10000000, .fallback = "64",
                              .commands = BENCH, .often = EVERY,
                              .help = "tokens to decode; 0 skips this measurement"},
    [AT(OPT_SERVE_TOKENS)] = {"max-tokens", 'n', "max-new max-new-tokens n-predict", "N",
                              OPTION_INTEGER, GROUP_ANSWER, .max = 100000000, .fallback = "0",
                              .commands = SERVE, .often = EVERY,
                              .help = "generate at most N tokens per answer, unless the request "
                                      "sets a limit; 0: until the context is full"},
    [AT(OPT_DEPTH)] = {"depth", 'd', NULL, "N", OPTION_INTEGER, GROUP_MEASURE, .max = 10000000,
                       .commands = BENCH, .often = EVERY,
                       .help =
                           "decode after N tokens of context [the prompt]; 0: an empty context"},
    [AT(OPT_REPEAT)] = {"repeat", 'r', "rounds", "N", OPTION_INTEGER, GROUP_MEASURE, .min = 1,
                        .max = 1000, .fallback = "3", .commands = BENCH, .often = EVERY,
                        .help = "measure N times"},
    [AT(OPT_DEPTHS)] = {"depths", 0, NULL, "LIST", OPTION_TEXT, GROUP_MEASURE, .one_call = true,
                        .commands = BENCH,
                        .help =
                            "also decode after each of these context lengths, such as 0,512,2048"},
    [AT(OPT_BATCH_SIZES)] =
        {"batch-sizes", 0, NULL, "LIST", OPTION_TEXT, GROUP_MEASURE, .one_call = true,
         .commands = BENCH,
         .help = "also time passes of these many tokens, such as 2,4,8, next to passes of one"},
    [AT(OPT_THREAD_COUNTS)] = {"thread-counts", 0, NULL, "LIST", OPTION_TEXT, GROUP_MEASURE,
                               .one_call = true, .commands = BENCH,
                               .help = "also measure with each of these thread counts"},
    [AT(OPT_SEQUENCES)] = {"sequences", 0, NULL, "LIST", OPTION_TEXT, GROUP_MEASURE,
                           .one_call = true, .commands = BENCH,
                           .help = "also decode these many sequences together, such as 1,2,4,8, "
                                   "each checked against the same sequence alone"},
    [AT(OPT_ARRIVING)] = {"arriving", 0, NULL, "N", OPTION_INTEGER, GROUP_MEASURE, .max = 10000000,
                          .fallback = "0", .one_call = true, .commands = BENCH,
                          .help =
                              "also let a prompt of N tokens arrive while the --sequences decode"},
    [AT(OPT_GAP)] = {"gap-ms", 0, NULL, "N", OPTION_INTEGER, GROUP_MEASURE, .max = 3600000,
                     .fallback = "100", .one_call = true, .commands = BENCH,
                     .help = "target time between two tokens while that prompt is read; 0: none"},
    [AT(OPT_STAGES)] = {"stages", 0, NULL, NULL, OPTION_SWITCH, GROUP_MEASURE, .one_call = true,
                        .commands = BENCH,
                        .help = "also show where the time of a token goes, stage by stage"},
    [AT(OPT_SPARSITY)] = {"sparsity", 0, NULL, NULL, OPTION_SWITCH, GROUP_MEASURE, .one_call = true,
                          .commands = BENCH,
                          .help = "also count the zeros that the down projections multiply"},
    [AT(OPT_TOUCH_BYTES)] =
        {"touch-bytes", 0, NULL, "N", OPTION_INTEGER, GROUP_TOUCH, .max = UINT64_C(1) << 40,
         .variables = "IE_BYTES_PER_TOKEN", .fallback = "0", .commands = RUN | BENCH,
         .help = "read N more bytes for every decoded token, within the timed window"},
    [AT(OPT_TOUCH_STRIDE)] =
        {"touch-stride", 0, NULL, "N", OPTION_INTEGER, GROUP_TOUCH, .min = 8, .max = 1 << 20,
         .variables = "IE_STRIDE_BYTES", .fallback = "256", .commands = RUN | BENCH,
         .help = "of these bytes, read one 8-byte word every N bytes, a multiple of 8"},
    [AT(OPT_TOUCH_HINT)] =
        {"touch-nt", 0, NULL, "WHEN", OPTION_CHOICE, GROUP_TOUCH, .choices = "auto on off",
         .fallback = "auto", .shown = "as --fetch-nt, else auto", .commands = RUN | BENCH,
         .help = "ask that these bytes are not kept in caches; auto: if they do not fit"},
    [AT(OPT_TOUCH_HINT_RATIO)] = {"touch-nt-ratio", 0, NULL, "PERCENT", OPTION_REAL, GROUP_TOUCH,
                                  .high = 100.0, .fallback = "100",
                                  .shown = "as --fetch-nt-ratio, else 100", .commands = RUN | BENCH,
                                  .help = "ask this for PERCENT % of the words"},
    [AT(OPT_TOUCH_AHEAD)] = {"touch-ahead", 0, NULL, "N", OPTION_INTEGER, GROUP_TOUCH,
                             .max = 1 << 20, .shown = "as --fetch-ahead", .commands = RUN | BENCH,
                             .help =
                                 "with each word, prefetch the memory N bytes ahead; 0: nothing"},
    [AT(OPT_VERIFY_TOUCH)] = {"verify-touch", 0, NULL, NULL, OPTION_SWITCH, GROUP_TOUCH,
                              .variables = "IE_VERIFY_TOUCH", .commands = RUN | BENCH,
                              .help = "fail if the sum of the words shows that one was skipped"},
    [AT(OPT_PRESET)] = {"preset", 0, NULL, "NAME", OPTION_TEXT, GROUP_MODEL, .commands = SYNTH,
                        .often = EVERY, .help = "geometry to write"},
    [AT(OPT_LIST)] = {"list", 'l', NULL, NULL, OPTION_SWITCH, GROUP_OUTPUT, .one_call = true,
                      .commands = SYNTH, .often = EVERY, .help = "list the presets"},
    [AT(OPT_MARKDOWN)] = {"markdown", 0, NULL, NULL, OPTION_SWITCH, GROUP_OUTPUT, .one_call = true,
                          .commands = KERNELS | BENCH, .help = "write a Markdown table"},
    [AT(OPT_TYPE)] = {"type", 0, NULL, "TYPE", OPTION_CHOICE, GROUP_WRITE,
                      .choices = TERN_ROW_FORMATS " " CONVERT_MIXTURES
                                                  " iq3_s iq3_xxs iq2_s iq2_xs iq2_xxs "
                                                  "iq1_m iq1_s iq1_bn iq2_bn i2_s tl1 tl2 int4",
                      .any_case = true, .one_call = true, .commands = RECODES, .often = EVERY,
                      .help = "format of the matrices, or a mixture of formats; vectors become f32 "
                              "(convert: without it, unchanged)"},
    [AT(OPT_PURE)] = {"pure", 0, NULL, NULL, OPTION_SWITCH, GROUP_WRITE, .one_call = true,
                      .commands = RECODES,
                      .help = "make all matrices TYPE, where TYPE is also the name of a mixture"},
    [AT(OPT_EMBEDDING_TYPE)] = {"embedding-type", 0, NULL, "TYPE", OPTION_CHOICE, GROUP_WRITE,
                                .choices = TERN_ROW_FORMATS, .any_case = true, .one_call = true,
                                .commands = RECODES, .often = EVERY,
                                .help = "format of the token embeddings"},
    [AT(OPT_OUTPUT_TYPE)] = {"output-type", 0, NULL, "TYPE", OPTION_CHOICE, GROUP_WRITE,
                             .choices = TERN_ROW_FORMATS " i2_s", .any_case = true,
                             .one_call = true, .commands = RECODES, .often = EVERY,
                             .help = "format of the output head"},
    [AT(OPT_FORCE)] = {"force", 0, NULL, NULL, OPTION_SWITCH, GROUP_OUTPUT, .one_call = true,
                       .commands = WRITES, .often = RECODES,
                       .help = "replace existing files, but never one that is being read"},
    [AT(OPT_FORCE_TERNARY)] =
        {"force-ternary", 0, NULL, NULL, OPTION_SWITCH, GROUP_WRITE, .one_call = true,
         .commands = RECODES,
         .help = "make weights ternary even if they are not, whatever precision that costs"},
    [AT(OPT_TERNARIZE)] =
        {"ternarize", 0, NULL, NULL, OPTION_SWITCH, GROUP_WRITE, .one_call = true,
         .commands = CONVERT,
         .help = "the weights are masters of ternary ones: round them as BitNet does"},
    [AT(OPT_TO)] = {"to", 0, NULL, "CONTAINER", OPTION_CHOICE, GROUP_WRITE,
                    .choices = "gguf iebin sidecar", .fallback = "gguf", .one_call = true,
                    .commands = RECODES, .often = EVERY,
                    .help = "kind of OUT: a GGUF file; a folder with model.ie.json, model.ie.bin "
                            "and the model's keys; or sparse layers beside the GGUF file"},
    [AT(OPT_Q4_MAP)] =
        {"q4-map", 0, NULL, "FILE", OPTION_TEXT, GROUP_WRITE, .file = FILE_READ, .one_call = true,
         .commands = RECODES,
         .help =
             "a q4_manifest.json that says which matrices become int4, and how; with --to iebin"},
    [AT(OPT_IMATRIX)] = {"imatrix", 0, NULL, "FILE", OPTION_TEXT, GROUP_WRITE, .file = FILE_READ,
                         .one_call = true, .commands = RECODES, .often = EVERY,
                         .help = "importance of the columns (from tern imatrix), used for int4, "
                                 "types of grids (iq1_s .. iq3_s), iq4_nl, iq4_xs, q4_0, q5_0 "
                                 "and K-quants"},
    [AT(OPT_INT4_GROUP)] = {"int4-group", 0, NULL, "N", OPTION_CHOICE, GROUP_WRITE,
                            .choices = "32 64 128 row", .fallback = "32", .one_call = true,
                            .commands = RECODES,
                            .help = "number of columns that share a scale, with --type int4"},
    [AT(OPT_ZERO_POINTS)] = {"int4-zero-points", 0, NULL, NULL, OPTION_SWITCH, GROUP_WRITE,
                             .one_call = true, .commands = RECODES,
                             .help = "add a zero point to each group, with --type int4"},
    [AT(OPT_SPARSE)] =
        {"sparse", 0, NULL, "LAYERS", OPTION_TEXT, GROUP_SPARSE, .one_call = true,
         .commands = RECODES,
         .help = "write these matrices as blocks, without blocks of zeros: ffn_down, blk.3, "
                 "blk.3.ffn_up, all, auto, comma-separated; with --to iebin or sidecar"},
    [AT(OPT_BLOCK)] = {"block", 0, NULL, "R,C", OPTION_TEXT, GROUP_SPARSE, .fallback = "16,64",
                       .one_call = true, .commands = RECODES,
                       .help = "rows and columns of a block, with --sparse or --dense"},
    [AT(OPT_THRESHOLD)] =
        {"threshold", 0, NULL, "T", OPTION_REAL, GROUP_SPARSE, .high = 3.4e38,
         .fallback = "0", .one_call = true, .commands = RECODES,
         .help = "drop blocks in which every weight is smaller than T; 0: only blocks of zeros"},
    [AT(OPT_KEEP)] =
        {"keep", 0, NULL, "PERCENT", OPTION_REAL, GROUP_SPARSE, .high = 100.0, .fallback = "100",
         .one_call = true, .commands = RECODES,
         .help = "keep at most this share of all blocks, those with the largest sums of squares"},
    [AT(OPT_DENSE)] = {"dense", 0, NULL, "R,C", OPTION_TEXT, GROUP_SPARSE, .one_call = true,
                       .commands = CONVERT,
                       .help = "the first operand is a file of R x C floats; OUT becomes a file of "
                               "its sparse blocks"},
    [AT(OPT_PLAN)] = {"plan", 0, NULL, NULL, OPTION_SWITCH, GROUP_OUTPUT, .one_call = true,
                      .commands = RECODES | DEDUP, .often = EVERY,
                      .help =
                          "write nothing; print what each tensor would become and what that saves"},
    [AT(OPT_BASE)] = {"base", 0, NULL, "FILE", OPTION_TEXT, GROUP_WRITE, .file = FILE_READ,
                      .one_call = true, .commands = DEDUP | CONVERT, .often = EVERY,
                      .help = "a model that shares bytes with this one; OUT gets a link to it "
                              "(convert: the model that an adapter is for, a file or a folder)"},
    [AT(OPT_MERGE_LORA)] = {"merge-lora", 0, NULL, "FILE[=SCALE]", OPTION_TEXT, GROUP_WRITE,
                            .repeats = true, .one_call = true, .commands = CONVERT,
                            .help = "the first operand is a model's file; OUT becomes it with this "
                                    "adapter in its weights (docs/adapters.md)"},
    [AT(OPT_GROUPS)] = {"groups", 0, NULL, "FILE", OPTION_TEXT, GROUP_WRITE, .fallback = "auto",
                        .one_call = true, .commands = DEDUP, .often = EVERY,
                        .help =
                            "which tensors share bytes: a groups.indices.json; auto finds them"},
    [AT(OPT_TENSOR_MAP)] = {"tensor-map", 0, NULL, "FILE", OPTION_TEXT, GROUP_WRITE,
                            .file = FILE_READ, .one_call = true, .commands = DEDUP,
                            .help = "file of names for --groups"},
    [AT(OPT_OUT_PREFIX)] =
        {"out-prefix", 0, NULL, "PREFIX", OPTION_TEXT, GROUP_WRITE, .one_call = true,
         .commands = DEDUP,
         .help = "write only the shared bytes: PREFIX.defaults.bin and the files beside it"},
};

const option_spec *option_describe_writing(option_id id) {
    return &table[AT(id)];
}
