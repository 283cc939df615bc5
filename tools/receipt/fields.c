/* SPDX-License-Identifier: Apache-2.0 */
/* Which fields a receipt has, and their types. */

#include "tools/receipt/receipt.h"

#ifdef TERN_HAVE_JANSSON

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/words.h"

enum { PATH_BYTES = 160, NAME_BYTES = 128 };

/* ---- findings -------------------------------------------------------------------------------- */

void receipt_find(receipt_findings *f, const char *format, ...) {
    char *line = NULL;
    va_list args;
    if (f->n == f->capacity) {
        const size_t capacity = 2 * f->capacity + 8;
        char **lines = realloc(f->lines, capacity * sizeof *lines);
        if (lines == NULL) {
            f->out_of_memory = true;
            return;
        }
        f->lines = lines;
        f->capacity = capacity;
    }
    va_start(args, format);
    const int n = vasprintf(&line, format, args);
    va_end(args);
    if (n < 0) {
        f->out_of_memory = true;
        return;
    }
    f->lines[f->n++] = line;
}

void receipt_findings_free(receipt_findings *f) {
    for (size_t i = 0; i < f->n; i++) {
        free(f->lines[i]);
    }
    free(f->lines);
    *f = (receipt_findings){0};
}

/* ---- the table ------------------------------------------------------------------------------- */

typedef enum field_type {
    FIELD_OBJECT, /* its members are fields of their own */
    FIELD_LIST,   /* its elements are the field path[] */
    FIELD_TEXT,   /* 1 to NAME_BYTES bytes, or one of `words` */
    FIELD_ANY_TEXT, /* may be empty */
    FIELD_HASH,     /* 64 lower-case hexadecimal digits */
    FIELD_KEY,      /* an even number of them */
    FIELD_COUNT,    /* an integer >= 0 */
    FIELD_NUMBER,   /* finite, >= 0 */
    FIELD_BOOL
} field_type;

typedef struct field {
    const char *path; /* "a.b", "a.*" for members of any name, "a[]" for elements */
    field_type type;
    bool optional;
    const char *words; /* TEXT: the values that are allowed, separated by spaces */
} field;

static const field fields[] = {
    {"$schema", FIELD_TEXT, .optional = true},
    {"schema_version", FIELD_TEXT},
    {"timestamp", FIELD_TEXT},
    {"compute_path", FIELD_TEXT},
    {"backend", FIELD_TEXT, .words = "cpu cuda metal"},
    {"kernels", FIELD_LIST},
    {"kernels[]", FIELD_TEXT},
    {"deterministic", FIELD_BOOL},
    {"environment", FIELD_OBJECT},
    {"environment.BITNET_DETERMINISTIC", FIELD_TEXT, .words = "0 1"},
    {"environment.BITNET_SEED", FIELD_TEXT},
    {"environment.RAYON_NUM_THREADS", FIELD_TEXT},
    {"environment.BITNET_STRICT_MODE", FIELD_TEXT, .words = "0 1"},
    {"environment.TERN_VERSION", FIELD_TEXT},
    {"environment.COMPILER", FIELD_TEXT},
    {"environment.OS", FIELD_TEXT},
    {"environment.CPU_BRAND", FIELD_ANY_TEXT},
    {"model_info", FIELD_OBJECT},
    {"model_info.model_path", FIELD_ANY_TEXT},
    {"model_info.sha256", FIELD_HASH},
    {"model_info.file_bytes", FIELD_COUNT},
    {"model_info.architecture", FIELD_TEXT},
    {"model_info.name", FIELD_ANY_TEXT},
    {"model_info.quantization_type", FIELD_TEXT},
    {"model_info.weight_formats", FIELD_OBJECT},
    {"model_info.weight_formats.*", FIELD_COUNT},
    {"model_info.i2s_layout", FIELD_TEXT, .words = "a b c d"},
    {"model_info.pre_tokenizer", FIELD_ANY_TEXT},
    {"model_info.layers", FIELD_COUNT},
    {"model_info.hidden_size", FIELD_COUNT},
    {"model_info.ffn_size", FIELD_COUNT},
    {"model_info.num_attention_heads", FIELD_COUNT},
    {"model_info.num_key_value_heads", FIELD_COUNT},
    {"model_info.head_dim", FIELD_COUNT},
    {"model_info.vocab_size", FIELD_COUNT},
    {"model_info.context_length", FIELD_COUNT},
    {"model_info.parameters", FIELD_COUNT},
    {"model_info.weight_bytes", FIELD_COUNT},
    {"run", FIELD_OBJECT},
    {"run.command", FIELD_TEXT, .words = "run bench"},
    {"run.isa", FIELD_TEXT},
    {"run.disabled", FIELD_ANY_TEXT},
    {"run.layout", FIELD_TEXT, .words = "t2r16 t5r16 tl1r16 tl2r16"},
    {"run.kv", FIELD_TEXT, .words = "f32 f16 q8_0"},
    {"run.context", FIELD_COUNT},
    {"run.batch", FIELD_COUNT},
    {"run.threads", FIELD_COUNT},
    {"run.chat", FIELD_BOOL},
    {"run.strict", FIELD_BOOL},
    {"run.dequantized_rows", FIELD_COUNT},
    {"sampler", FIELD_OBJECT},
    {"sampler.temperature", FIELD_NUMBER},
    {"sampler.top_k", FIELD_COUNT},
    {"sampler.top_p", FIELD_NUMBER},
    {"sampler.seed", FIELD_TEXT},
    {"sampler.sha256", FIELD_HASH},
    {"prompt", FIELD_OBJECT},
    {"prompt.tokens", FIELD_COUNT},
    {"prompt.text_sha256", FIELD_HASH, .optional = true},
    {"prompt.ids_sha256", FIELD_HASH},
    {"prompt.ids", FIELD_LIST},
    {"prompt.ids[]", FIELD_COUNT},
    {"output", FIELD_OBJECT},
    {"output.tokens", FIELD_COUNT},
    {"output.stop", FIELD_TEXT, .words = "end length context stop interrupted"},
    {"output.max_tokens", FIELD_COUNT},
    {"output.ignore_end", FIELD_BOOL},
    {"output.text_sha256", FIELD_HASH, .optional = true},
    {"output.ids_sha256", FIELD_HASH},
    {"output.ids", FIELD_LIST},
    {"output.ids[]", FIELD_COUNT},
    {"output.logits", FIELD_LIST},
    {"output.logits[]", FIELD_OBJECT},
    {"output.logits[].after", FIELD_COUNT},
    {"output.logits[].sha256", FIELD_HASH},
    {"test_results", FIELD_OBJECT},
    {"test_results.total_tests", FIELD_COUNT},
    {"test_results.passed", FIELD_COUNT},
    {"test_results.failed", FIELD_COUNT},
    {"test_results.skipped", FIELD_COUNT},
    {"test_results.seconds", FIELD_NUMBER},
    {"test_results.tests", FIELD_LIST},
    {"test_results.tests[]", FIELD_OBJECT},
    {"test_results.tests[].name", FIELD_TEXT},
    {"test_results.tests[].result", FIELD_TEXT, .words = "passed failed skipped"},
    {"test_results.accuracy_tests", FIELD_OBJECT},
    {"test_results.accuracy_tests.*", FIELD_OBJECT},
    {"test_results.accuracy_tests.*.mse", FIELD_NUMBER},
    {"test_results.accuracy_tests.*.tolerance", FIELD_NUMBER},
    {"test_results.accuracy_tests.*.passed", FIELD_BOOL},
    {"test_results.accuracy_tests.*.tensor", FIELD_TEXT},
    {"test_results.accuracy_tests.*.gemv", FIELD_TEXT},
    {"test_results.accuracy_tests.*.gemm", FIELD_TEXT},
    {"test_results.determinism_tests", FIELD_OBJECT},
    {"test_results.determinism_tests.identical_sequences", FIELD_BOOL},
    {"test_results.determinism_tests.runs", FIELD_COUNT},
    {"test_results.determinism_tests.tokens_per_run", FIELD_COUNT},
    {"test_results.kv_cache_tests", FIELD_OBJECT},
    {"test_results.kv_cache_tests.prefill_decode_parity", FIELD_BOOL},
    {"test_results.kv_cache_tests.positions", FIELD_COUNT},
    {"test_results.kv_cache_tests.cache_hit_rate", FIELD_NUMBER},
    {"performance_baseline", FIELD_OBJECT},
    {"performance_baseline.tokens_generated", FIELD_COUNT},
    {"performance_baseline.total_time_ms", FIELD_NUMBER},
    {"performance_baseline.prefill_time_ms", FIELD_NUMBER},
    {"performance_baseline.decode_time_ms", FIELD_NUMBER},
    {"performance_baseline.tokens_per_second", FIELD_NUMBER},
    {"performance_baseline.first_token_latency_ms", FIELD_NUMBER},
    {"performance_baseline.average_token_latency_ms", FIELD_NUMBER},
    {"performance_baseline.p50_ms", FIELD_NUMBER},
    {"performance_baseline.p95_ms", FIELD_NUMBER},
    {"performance_baseline.logits_hash_ms", FIELD_NUMBER},
    {"performance_baseline.memory_usage_mb", FIELD_NUMBER},
    {"performance_baseline.bytes_per_token", FIELD_COUNT},
    {"performance_baseline.cache_efficiency", FIELD_OBJECT},
    {"performance_baseline.cache_efficiency.kv_cache_hit_rate", FIELD_NUMBER},
    {"performance_baseline.cache_efficiency.positions_reused", FIELD_COUNT},
    {"performance_baseline.cache_efficiency.tokens_evaluated", FIELD_COUNT},
    {"performance_baseline.cache_efficiency.tensor_cache_hits", FIELD_COUNT},
    {"performance_baseline.cache_efficiency.tensor_cache_misses", FIELD_COUNT},
    {"cross_validation", FIELD_OBJECT},
    {"cross_validation.cpp_reference_available", FIELD_BOOL},
    {"cross_validation.tolerance", FIELD_NUMBER},
    {"cross_validation.parity_tests_passed", FIELD_COUNT},
    {"machine", FIELD_OBJECT},
    {"machine.cpu", FIELD_ANY_TEXT},
    {"machine.cores", FIELD_COUNT},
    {"machine.architecture", FIELD_TEXT, .words = "x86_64 aarch64 other"},
    {"machine.os", FIELD_TEXT},
    {"machine.instruction_sets", FIELD_LIST},
    {"machine.instruction_sets[]", FIELD_TEXT},
    {"versions", FIELD_OBJECT},
    {"versions.tern", FIELD_TEXT},
    {"versions.compiler", FIELD_TEXT},
    {"model_hash_seconds", FIELD_NUMBER},
    {"benchmark", FIELD_OBJECT, .optional = true},
    {"benchmark.prompt_tokens", FIELD_COUNT},
    {"benchmark.depth", FIELD_COUNT},
    {"benchmark.repeat", FIELD_COUNT},
    {"benchmark.prefill_tps", FIELD_NUMBER},
    {"benchmark.prefill_spread_percent", FIELD_NUMBER},
    {"benchmark.decode_tps", FIELD_NUMBER},
    {"benchmark.decode_spread_percent", FIELD_NUMBER},
    {"benchmark.first_token_ms", FIELD_NUMBER},
    {"benchmark.p50_ms", FIELD_NUMBER},
    {"benchmark.p95_ms", FIELD_NUMBER},
    {"benchmark.rss_mib", FIELD_NUMBER},
    {"benchmark.bytes_per_token", FIELD_COUNT},
    {"benchmark.bandwidth_gbs", FIELD_NUMBER},
    {"benchmark.read_gbs", FIELD_NUMBER},
    {"benchmark.bandwidth_fraction", FIELD_NUMBER},
    {"digest", FIELD_OBJECT},
    {"digest.algorithm", FIELD_TEXT, .words = RECEIPT_DIGEST},
    {"digest.value", FIELD_HASH},
    {"signature", FIELD_OBJECT, .optional = true},
    {"signature.algorithm", FIELD_TEXT, .words = "ed25519"},
    {"signature.public_key", FIELD_HASH},
    {"signature.value", FIELD_KEY},
};

enum { FIELDS = sizeof fields / sizeof *fields };

/* ---- checking -------------------------------------------------------------------------------- */

/* A place in a document: as the table names it, and as a reader does ("a.b[3]"). */
typedef struct place {
    char path[PATH_BYTES];
    char shown[PATH_BYTES];
} place;

static const field *find(const char *path) {
    for (size_t i = 0; i < FIELDS; i++) {
        if (strcmp(fields[i].path, path) == 0) {
            return &fields[i];
        }
    }
    return NULL;
}

/* The field of a member: of its name, else of any name. NULL: the table has none. */
static const field *find_member(const place *at, const char *key, place *member) {
    const char *dot = at->path[0] != '\0' ? "." : "";
    const field *f = NULL;
    if (strlen(at->path) + strlen(key) + 2 > PATH_BYTES) {
        return NULL;
    }
    (void)snprintf(member->shown, PATH_BYTES, "%s%s%.64s", at->shown, dot, key);
    if (strpbrk(key, ".*[]") == NULL) { /* these have a meaning in the table */
        (void)snprintf(member->path, PATH_BYTES, "%s%s%s", at->path, dot, key);
        f = find(member->path);
    }
    if (f == NULL) {
        (void)snprintf(member->path, PATH_BYTES, "%s%s*", at->path, dot);
        f = find(member->path);
    }
    return f;
}

static bool is_hex(const char *text, size_t low, size_t high) {
    const size_t n = strlen(text);
    return n >= low && n <= high && n % 2 == 0 && strspn(text, "0123456789abcdef") == n;
}

static bool is_word(const char *text, const char *words) {
    char word[WORD_BYTES];
    while (word_next(&words, word)) {
        if (strcmp(word, text) == 0) {
            return true;
        }
    }
    return false;
}

static const char *wanted(const field *f) {
    static const char *const texts[] = {[FIELD_OBJECT] = "an object",
                                        [FIELD_LIST] = "a list",
                                        [FIELD_TEXT] = "a text of 1 to 128 bytes",
                                        [FIELD_ANY_TEXT] = "a text",
                                        [FIELD_HASH] = "64 lower-case hexadecimal digits",
                                        [FIELD_KEY] = "128 lower-case hexadecimal digits",
                                        [FIELD_COUNT] = "an integer from 0 on",
                                        [FIELD_NUMBER] = "a finite number from 0 on",
                                        [FIELD_BOOL] = "true or false"};
    return f->words != NULL ? f->words : texts[f->type];
}

static bool text_fits(const field *f, const json_t *value) {
    const char *text = json_string_value(value);
    if (text == NULL || strlen(text) != json_string_length(value)) {
        return false;
    }
    switch (f->type) {
    case FIELD_TEXT:
        return f->words != NULL ? is_word(text, f->words)
                                : text[0] != '\0' && strlen(text) <= NAME_BYTES;
    case FIELD_HASH:
        return is_hex(text, 64, 64);
    case FIELD_KEY:
        return is_hex(text, 128, 128);
    default:
        return true;
    }
}

static bool fits(const field *f, const json_t *value) {
    switch (f->type) {
    case FIELD_OBJECT:
        return json_is_object(value);
    case FIELD_LIST:
        return json_is_array(value);
    case FIELD_COUNT:
        return json_is_integer(value) && json_integer_value(value) >= 0;
    case FIELD_NUMBER:
        return json_is_number(value) && json_number_value(value) >= 0 &&
               isfinite(json_number_value(value));
    case FIELD_BOOL:
        return json_is_boolean(value);
    default:
        return text_fits(f, value);
    }
}

/* A value as a line shows it: short, and without control characters. */
static void show(const json_t *value, char *text, size_t size) {
    char *dump = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);
    (void)snprintf(text, size, "%s", dump != NULL ? dump : "?");
    if (dump != NULL && strlen(dump) >= size) {
        memcpy(text + size - 4, "...", 4);
    }
    free(dump);
}

static void check_value(const json_t *value, const field *f, const place *at,
                        receipt_findings *out);

/* Fields of an object that are not there. */
static void check_missing(const json_t *object, const place *at, receipt_findings *out) {
    const size_t n = strlen(at->path);
    for (size_t i = 0; i < FIELDS; i++) {
        const char *path = fields[i].path;
        if (n > 0 && (strncmp(path, at->path, n) != 0 || path[n] != '.')) {
            continue;
        }
        const char *key = path + n + (n > 0);
        const bool direct = strpbrk(key, ".*[") == NULL;
        if (direct && !fields[i].optional && json_object_get(object, key) == NULL) {
            receipt_find(out, "%s%s%s: is missing", at->shown, n > 0 ? "." : "", key);
        }
    }
}

static void check_members(const json_t *object, const place *at, receipt_findings *out) {
    const char *key;
    json_t *member;
    json_object_foreach((json_t *)(uintptr_t)object, key, member) {
        place inner;
        const field *f = find_member(at, key, &inner);
        if (f == NULL) {
            receipt_find(out, "%s%s%.64s: is no field of a receipt", at->shown,
                         at->path[0] != '\0' ? "." : "", key);
        } else {
            check_value(member, f, &inner, out);
        }
    }
    check_missing(object, at, out);
}

static void check_value(const json_t *value, const field *f, const place *at,
                        receipt_findings *out) {
    if (!fits(f, value)) {
        char text[64];
        show(value, text, sizeof text);
        receipt_find(out, "%s: is %s, must be %s%s", at->shown, text,
                     f->words != NULL && strchr(f->words, ' ') != NULL ? "one of: " : "",
                     wanted(f));
        return;
    }
    if (f->type == FIELD_OBJECT) {
        check_members(value, at, out);
    }
    for (size_t i = 0; f->type == FIELD_LIST && i < json_array_size(value); i++) {
        place inner;
        (void)snprintf(inner.path, PATH_BYTES, "%.*s[]", PATH_BYTES - 3, at->path);
        (void)snprintf(inner.shown, PATH_BYTES, "%.*s[%zu]", PATH_BYTES - 24, at->shown, i);
        const field *element = find(inner.path);
        if (element != NULL) {
            check_value(json_array_get(value, i), element, &inner, out);
        }
    }
}

bool receipt_check_fields(const json_t *receipt, receipt_findings *f) {
    const place root = {"", ""};
    const size_t before = f->n;
    check_members(receipt, &root, f);
    return f->n == before && !f->out_of_memory;
}

json_t *receipt_at(const json_t *root, const char *path) {
    char key[PATH_BYTES];
    const json_t *value = root;
    while (value != NULL && *path != '\0') {
        const size_t n = strcspn(path, ".");
        if (n >= sizeof key) {
            return NULL;
        }
        memcpy(key, path, n);
        key[n] = '\0';
        value = json_object_get(value, key);
        path += n + (path[n] == '.');
    }
    return (json_t *)(uintptr_t)value;
}

#endif
