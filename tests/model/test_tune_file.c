/* SPDX-License-Identifier: Apache-2.0 */
/* Choices on disk, and models that are opened with them: the same answer, whatever was chosen. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash64.h"
#include "dispatch/cpu.h"
#include "runtime/model/model.h"
#include "runtime/model/tune/file.h"
#include "runtime/model/tune_model.h"
#include "tests/model/tune_folder.h"
#include "tests/model/tune_forge.h"
#include "tests/support/check.h"

/* ---- the text of a file ---------------------------------------------------------------------- */

static tern_tuning two_choices(const tern_guard *guard) {
    const tern_kernel_row *kernels[TERN_TUNE_CANDIDATES];
    tern_tuning t = {.n = 0};
    tern_tune_choice choice = {
        .key = {.format = TERN_FORMAT_Q8_0, .rows = 64, .cols = 96, .threads = 2, .stream = 4096}};
    for (int i = 0; i < 2; i++) {
        choice.key.format = i ? TERN_FORMAT_I2_S : TERN_FORMAT_Q8_0;
        (void)tern_tune_candidates(guard, TERN_OP_GEMM, choice.key.format, kernels);
        choice.gemm = kernels[0];
        (void)tern_tune_candidates(guard, TERN_OP_GEMV, choice.key.format, kernels);
        choice.gemv = kernels[0];
        choice.layout = kernels[0]->layout;
        assert_int_equal(tern_tuning_set(&t, &choice, NULL), TERN_OK);
    }
    t.choices[1].noise = 17;
    t.paces = (tern_tune_paces){.n = 1,
                                .list = {{.threads = 2,
                                          .shape = INT64_MAX,
                                          .table_ns = 2000,
                                          .chosen_ns = 1500,
                                          .runs = 2,
                                          .rechecks = 1}}};
    t.layouts = (tern_layout_probes){.n = 1,
                                     .list = {{.threads = 3,
                                               .stream = 4096,
                                               .dense = TERN_LAYOUT_T5R16,
                                               .ratio = 800,
                                               .noise = 7,
                                               .passes = {900, TERN_LAYOUT_RATIO_LIMIT}}}};
    t.cores = (tern_core_speeds){.n = 2, .announced = {1024, 491}, .measured = {1000, 700}};
    return t;
}

static tern_status parse(const char *text, size_t size, const tern_guard *guard, tern_tuning *out) {
    const tern_tune_machine machine = tern_tune_this_machine(guard);
    char *copy = malloc(size + 1); /* exactly the text where a sanitizer watches */
    assert_non_null(copy);
    memcpy(copy, text, size);
    copy = realloc(copy, size > 0 ? size : 1);
    return tern_tune_parse(copy, size, "file", &machine, guard, out, NULL);
}

static void test_round_trip(void **state) {
    const tern_guard guard = tern_guard_new(tern_cpu_features());
    const tern_tune_machine machine = tern_tune_this_machine(&guard);
    tern_tuning in = two_choices(&guard), out = {.n = 0};
    size_t size;
    (void)state;
    char *text = tern_tune_text(&machine, &in, &size);
    assert_non_null(text);
    assert_int_equal(parse(text, size, &guard, &out), TERN_OK);
    assert_int_equal(out.n, 2);
    assert_memory_equal(&out.cores, &in.cores, sizeof in.cores);
    for (size_t i = 0; i < 2; i++) {
        const tern_tune_choice *found = tern_tuning_find(&out, &in.choices[i].key);
        assert_non_null(found);
        assert_int_equal(found->layout, in.choices[i].layout);
        assert_ptr_equal(found->gemv, in.choices[i].gemv);
        assert_ptr_equal(found->gemm, in.choices[i].gemm);
        assert_int_equal(found->noise, in.choices[i].noise);
    }
    assert_int_equal(out.layouts.n, 1);
    assert_memory_equal(&out.layouts.list[0], &in.layouts.list[0], sizeof in.layouts.list[0]);
    assert_int_equal(out.paces.n, 1);
    const tern_tune_pace *p = &out.paces.list[0];
    assert_true(p->threads == 2 && p->shape == INT64_MAX && p->table_ns == 2000);
    assert_true(p->chosen_ns == 1500 && p->runs == 2 && p->rechecks == 1);
    tern_tuning_free(&in);
    tern_tuning_free(&out);
    free(text);
}

/* A file that is cut anywhere, or has one bit changed, is not read. */
static void test_damaged(void **state) {
    const tern_guard guard = tern_guard_new(tern_cpu_features());
    const tern_tune_machine machine = tern_tune_this_machine(&guard);
    tern_tuning in = two_choices(&guard), out = {.n = 0};
    size_t size;
    (void)state;
    char *text = tern_tune_text(&machine, &in, &size);
    for (size_t i = 0; i < size; i++) {
        assert_int_equal(parse(text, i, &guard, &out), TERN_ERR_JSON);
        text[i] = (char)(text[i] ^ 1 << i % 8);
        assert_int_equal(parse(text, size, &guard, &out), TERN_ERR_JSON);
        text[i] = (char)(text[i] ^ 1 << i % 8);
    }
    assert_int_equal(out.n, 0);
    tern_tuning_free(&in);
    free(text);
}

#define SHAPE "\"format\":\"q8_0\",\"rows\":64,\"cols\":96,\"threads\":2,\"stream\":4096"

/* Reads a complete file of this machine with this list of choices, and the text that follows it. */
static tern_status parse_forged(const char *list, tern_tuning *out) {
    const tern_guard guard = tern_guard_new(tern_cpu_features());
    const tern_tune_machine machine = tern_tune_this_machine(&guard);
    size_t size;
    char *text = forge_tuning(&machine, list, strlen(list), &size);
    assert_non_null(text);
    check_case("%.200s", list);
    const tern_status status = parse(text, size, &guard, out);
    free(text);
    return status;
}

/* Checks how many choices are read from a list; -1: the file is refused. */
static void check_list(const char *list, int expected) {
    tern_tuning out = {.n = 0};
    assert_int_equal(parse_forged(list, &out), expected < 0 ? TERN_ERR_JSON : TERN_OK);
    assert_int_equal(out.n, expected < 0 ? 0 : expected);
    tern_tuning_free(&out);
}

/* Complete files whose contents a tuner would not write. */
static void test_hostile(void **state) {
    const uint64_t mask = tern_cpu_features();
    const char *gemv = tern_kernel_select(mask, TERN_OP_GEMV, TERN_FORMAT_Q8_0)->name;
    const char *gemm = tern_kernel_select(mask, TERN_OP_GEMM, TERN_FORMAT_Q8_0)->name;
    const char *foreign = tern_kernel_select(mask, TERN_OP_GEMM, TERN_FORMAT_Q4_0)->name;
    const char *const shapes[] = {
        "\"format\":\"q9_0\",\"rows\":64,\"cols\":96,\"threads\":2,\"stream\":4096",
        "\"format\":\"q4_0\",\"rows\":64,\"cols\":96,\"threads\":2,\"stream\":4096",
        "\"format\":\"q8_0\",\"rows\":-1,\"cols\":96,\"threads\":2,\"stream\":4096",
        "\"format\":\"q8_0\",\"rows\":64,\"cols\":0,\"threads\":2,\"stream\":4096",
        "\"format\":\"q8_0\",\"rows\":64,\"cols\":96.5,\"threads\":2,\"stream\":4096",
        "\"format\":\"q8_0\",\"rows\":64,\"cols\":96,\"threads\":4294967296,\"stream\":4096",
        "\"format\":\"q8_0\",\"rows\":64,\"cols\":96,\"threads\":2",
        "\"format\":8,\"rows\":64,\"cols\":96,\"threads\":2,\"stream\":4096",
        "\"rows\":\"64\",\"format\":\"q8_0\",\"cols\":96,\"threads\":2,\"stream\":4096",
    };
    char list[1024];
    (void)state;
    snprintf(list, sizeof list, "[{" SHAPE ",\"gemv\":\"%s\",\"gemm\":\"%s\"}]", gemv, gemm);
    check_list(list, 1);
    snprintf(list, sizeof list, "[{" SHAPE ",\"gemv\":\"%s\",\"gemm\":\"%s\"}, 7, [], {}]", gemv,
             gemm);
    check_list(list, 1);
    snprintf(list, sizeof list, "[{" SHAPE ",\"gemv\":\"%s\",\"gemm\":\"%s\"}]", gemm, gemv);
    check_list(list, 0);
    snprintf(list, sizeof list, "[{" SHAPE ",\"gemv\":\"%s\",\"gemm\":\"%s\"}]", gemv, foreign);
    check_list(list, 0);
    snprintf(list, sizeof list, "[{" SHAPE ",\"gemv\":\"%s\",\"gemm\":\"no such row\"}]", gemv);
    check_list(list, 0);
    snprintf(list, sizeof list, "[{" SHAPE ",\"gemv\":\"%s\"}]", gemv);
    check_list(list, 0);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        snprintf(list, sizeof list, "[{%s,\"gemv\":\"%s\",\"gemm\":\"%s\"}]", shapes[i], gemv,
                 gemm);
        check_list(list, 0);
    }
    check_list("{}", -1);
    check_list("null", -1);
    check_list("[", -1);
    check_list("[{\"rows\":}]", -1);
}

/* Checks how many kinds of cores are read from a list. */
static void check_cores(const char *cores, uint32_t expected) {
    tern_tuning out = {.n = 0};
    char list[1024];
    snprintf(list, sizeof list, "[],\"speeds\":%s", cores);
    assert_int_equal(parse_forged(list, &out), TERN_OK);
    assert_int_equal(out.cores.n, expected);
    tern_tuning_free(&out);
}

/* Checks how many probes of layouts are read from a list. */
static void check_probes(const char *probes, size_t expected) {
    tern_tuning out = {.n = 0};
    char list[1024];
    snprintf(list, sizeof list, "[],\"layouts\":%s", probes);
    assert_int_equal(parse_forged(list, &out), TERN_OK);
    assert_int_equal(out.layouts.n, expected);
    tern_tuning_free(&out);
}

#define PROBE(dense) "[{\"threads\":2,\"stream\":4096,\"ratio\":800,\"noise\":7" dense "}]"

/* A probe is about a layout of base 3. */
static void test_probe_of_no_base3(void **state) {
    (void)state;
    check_probes(PROBE(",\"dense\":\"t5r16\""), 1);
    check_probes(PROBE(",\"dense\":\"t2r16\""), 0);
    check_probes(PROBE(",\"dense\":5"), 0);
    check_probes(PROBE(""), 0);
}

#define SPEED(announced, measured) "{\"announced\":" #announced ",\"measured\":" #measured "}"

static void test_cores(void **state) {
    (void)state;
    check_cores("[" SPEED(1024, 1024) "," SPEED(500, 700) "]", 2);
    check_cores("[]", 0);
    check_cores("{}", 0);
    check_cores("[" SPEED(1025, 1024) "]", 0);
    check_cores("[" SPEED(1024, 0) "]", 0);
    check_cores("[" SPEED(1024, 1025) "]", 0);
    check_cores("[" SPEED(500, 700) "," SPEED(500, 700) "]", 0); /* speeds must fall */
    check_cores("[" SPEED(1024, 1024) ",7]", 0);
    check_cores("[" SPEED(9, 1) "," SPEED(8, 1) "," SPEED(7, 1) "," SPEED(6, 1) "," SPEED(
                    5, 1) "," SPEED(4, 1) "," SPEED(3, 1) "," SPEED(2, 1) "]",
                8);
    check_cores("[" SPEED(9, 1) "," SPEED(8, 1) "," SPEED(7, 1) "," SPEED(6, 1) "," SPEED(
                    5, 1) "," SPEED(4, 1) "," SPEED(3, 1) "," SPEED(2, 1) "," SPEED(1, 1) "]",
                0);
}

/* A row that this processor lacks is not read, nor is the file of another machine. */
static void test_other_machine(void **state) {
    const tern_guard guard = tern_guard_new(tern_cpu_features()), weak = tern_guard_new(0);
    tern_tune_machine machine = tern_tune_this_machine(&guard);
    tern_tuning in = two_choices(&guard), out = {.n = 0};
    char name[TERN_TUNE_NAME_BYTES], other[TERN_TUNE_NAME_BYTES];
    size_t size;
    (void)state;
    char *text = tern_tune_text(&machine, &in, &size);
    tern_tune_name(&machine, name);
    if (guard.mask != 0) {
        const tern_tune_machine poor = tern_tune_this_machine(&weak);
        assert_int_equal(parse(text, size, &weak, &out), TERN_ERR_JSON);
        tern_tune_name(&poor, other);
        assert_string_not_equal(name, other);
    }
    machine.cores++;
    char *copy = malloc(size);
    memcpy(copy, text, size);
    assert_int_equal(tern_tune_parse(copy, size, "file", &machine, &guard, &out, NULL),
                     TERN_ERR_JSON);
    tern_tune_name(&machine, other);
    assert_string_not_equal(name, other);
    assert_int_equal(out.n, 0);
    tern_tuning_free(&in);
    free(text);
}

/* ---- the folder ------------------------------------------------------------------------------ */

/* Saving keeps the existing choices. An invalid file is replaced. */
static void test_save(void **state) {
    const tern_guard guard = tern_guard_new(tern_cpu_features());
    tern_tuning all = two_choices(&guard), out = {.n = 0};
    const tern_tuning first = {.choices = all.choices, .n = 1},
                      second = {.choices = all.choices + 1, .n = 1};
    tern_cache_folder *folder = NULL;
    char path[128];
    (void)state;
    assert_int_equal(tern_cache_folder_open(folder_path, &folder, NULL), TERN_OK);
    tern_tune_load(folder, &guard, &out);
    assert_int_equal(out.n, 0);
    assert_int_equal(tern_tune_save(folder, &guard, &first, NULL), TERN_OK);
    assert_int_equal(tern_tune_save(folder, &guard, &second, NULL), TERN_OK);
    tern_tune_load(folder, &guard, &out);
    assert_int_equal(out.n, 2);
    tern_tuning_free(&out);
    file_of(&guard, path, sizeof path);
    assert_int_equal(truncate(path, 100), 0);
    tern_tune_load(folder, &guard, &out);
    assert_int_equal(out.n, 0);
    assert_int_equal(tern_tune_save(folder, &guard, &second, NULL), TERN_OK);
    tern_tune_load(folder, &guard, &out);
    assert_int_equal(out.n, 1);
    assert_int_equal(truncate(path, TERN_TUNE_FILE_LIMIT + 1), 0); /* too large to be read */
    tern_tuning_free(&out);
    tern_tune_load(folder, &guard, &out);
    assert_int_equal(out.n, 0);
    tern_cache_folder_close(&folder);
    tern_tuning_free(&all);
    assert_int_equal(empty_folder(), 1);
}

/* ---- models ---------------------------------------------------------------------------------- */

/* Opens the model with images of weights, which must not be confused with those of other
 * layouts. */
static tern_model *open_tuned(const char *path, uint32_t threads, const char *layout) {
    tern_model_params params = tern_model_params_default();
    tern_model *model = NULL;
    tern_error err = {0};
    params.tune = true;
    params.cache = folder_path;
    params.threads = threads;
    params.layout = layout;
    params.images = TERN_IMAGES_ALL;
    params.strict = true;
    if (tern_model_open(path, &params, &model, &err) != TERN_OK)
        check_fail("%s", err.message);
    return model;
}

/* Each matrix finds its own choice, whatever layout the choice has. */
static void check_told(const tern_model *model) {
    const tern_linear *linear;
    for (size_t k = 0; (linear = tern_model_linear(model, k)) != NULL; k++) {
        const tern_tune_choice *choice = tern_model_tuned(model, linear);
        assert_non_null(choice);
        assert_ptr_equal(choice->gemv, linear->gemv);
        assert_int_equal(choice->layout, linear->matrix.layout);
    }
}

/* Every candidate that a file forces upon the model runs, and gives the same bits. */
static void check_candidates(const char *preset) {
    char *path = model_path(preset);
    const uint64_t expected = untuned_answer(path);
    for (uint32_t threads = 1; threads <= 2; threads++)
        for (size_t i = 0; force(path, threads, i); i++) {
            const tern_kernel_row *kernels[TERN_TUNE_CANDIDATES];
            tern_model *model = open_tuned(path, threads, NULL);
            const tern_linear *q = &model->layers[0].q;
            const tern_format format = tern_tune_format(q->matrix.format, q->matrix.layout);
            const size_t n = tern_tune_candidates(
                &model->guard, TERN_OP_GEMV,
                q->form == TERN_INPUT_TOKEN ? TERN_FORMAT_I2_S : format, kernels);
            check_case("%s, candidate %zu, %u threads", preset, i, threads);
            assert_string_equal(tern_model_choice(model), "tuned");
            assert_ptr_equal(q->gemv, kernels[i % n]);
            assert_int_equal(q->matrix.layout, kernels[i % n]->layout);
            check_told(model);
            assert_true(answer(model, threads) == expected);
            tern_model_free(&model);
        }
    unlink(path);
    assert_int_equal(empty_folder(), 1);
}

static void test_one_answer(void **state) {
    (void)state;
    check_candidates("bitnet-tiny");
    check_candidates("bitnet-tiny-odd");
    check_candidates("falcon3-tiny");
    check_candidates("llama-tiny-q4_0");
    check_candidates("llama-tiny-q6_k");
}

/* The first load measures and keeps the choices, the second only reads them. */
static void test_first_load(void **state) {
    char *path = model_path("bitnet-tiny"), file[128];
    const uint64_t expected = untuned_answer(path);
    (void)state;
    tern_model *model = open_tuned(path, 2, NULL);
    assert_string_equal(tern_model_choice(model), "tuned");
    assert_true(answer(model, 2) == expected);
    file_of(&model->guard, file, sizeof file);
    tern_tune_key keys[TERN_TUNE_KEYS];
    const size_t n = tern_tune_keys(model, 2, keys);
    for (int i = 0; model->tuning.n < n && i < 20; i++) { /* busy machines need several */
        tern_model_free(&model);
        model = open_tuned(path, 2, NULL);
    }
    assert_int_equal(model->tuning.n, n);
    tern_model_free(&model);
    assert_int_equal(truncate(file, 50), 0); /* damaged: measured and written again */
    model = open_tuned(path, 2, NULL);
    assert_string_equal(tern_model_choice(model), "tuned");
    tern_model_free(&model);
    tern_model_params params = tern_model_params_default();
    params.tune = true;
    params.cache = folder_path;
    params.threads = 2;
    params.no_weights = true; /* measures nothing, but reads the file */
    assert_int_equal(tern_model_open(path, &params, &model, NULL), TERN_OK);
    assert_string_equal(tern_model_choice(model), "tuned");
    tern_model_free(&model);
    params.threads = 3;
    assert_int_equal(tern_model_open(path, &params, &model, NULL), TERN_OK);
    assert_string_equal(tern_model_choice(model), "table");
    tern_model_free(&model);
    unlink(path);
    assert_int_equal(empty_folder(), 1);
}

/* Without a folder, or with an unusable one, measurements are made and forgotten. */
static void test_no_folder(void **state) {
    char *path = model_path("llama-tiny-q8_0");
    tern_model_params params = tern_model_params_default();
    tern_model *model = NULL;
    (void)state;
    params.tune = true;
    params.threads = 1;
    assert_int_equal(tern_model_open(path, &params, &model, NULL), TERN_OK);
    assert_string_equal(tern_model_choice(model), "tuned");
    tern_model_free(&model);
    params.cache = path; /* not a folder */
    assert_int_equal(tern_model_open(path, &params, &model, NULL), TERN_OK);
    tern_model_free(&model);
    unlink(path);
}

/* A requested layout wins over the file. The head may still be tuned. */
static void test_asked(void **state) {
    char *path = model_path("bitnet-tiny");
    (void)state;
    assert_true(force(path, 1, 0));
    tern_model *model = open_tuned(path, 1, "t5r16");
    assert_string_equal(tern_model_choice(model), "asked");
    assert_string_equal(tern_model_layout(model), "t5r16");
    tern_model_free(&model);
    model = open_tuned(path, 1, NULL);
    assert_string_equal(tern_model_layout(model), "t2r16");
    model->layers[0].q.matrix.layout = TERN_LAYOUT_T5R16;
    assert_string_equal(tern_model_layout(model), "mixed");
    model->layers[0].q.matrix.layout = TERN_LAYOUT_T2R16;
    tern_model_free(&model);
    unlink(path);
    assert_int_equal(empty_folder(), 1);
}

/* Keeps these figures of a probe for the model, and no choice. */
static void keep_noisy_probe(const char *path, uint32_t ratio, uint32_t noise) {
    tern_tune_key keys[TERN_TUNE_KEYS];
    tern_model_params params = tern_model_params_default();
    tern_cache_folder *folder = NULL;
    tern_model *model = NULL;
    tern_tuning kept = {.n = 0};
    params.no_weights = true;
    assert_int_equal(tern_model_open(path, &params, &model, NULL), TERN_OK);
    assert_true(tern_tune_keys(model, 2, keys) > 0);
    const tern_layout_probe probe = {.threads = 2,
                                     .stream = keys[0].stream,
                                     .dense = TERN_LAYOUT_T5R16,
                                     .ratio = ratio,
                                     .noise = noise,
                                     .passes = {900, 1380}};
    tern_layout_keep(&kept.layouts, &probe);
    assert_int_equal(tern_cache_folder_open(folder_path, &folder, NULL), TERN_OK);
    assert_int_equal(tern_tune_save(folder, &model->guard, &kept, NULL), TERN_OK);
    tern_cache_folder_close(&folder);
    tern_model_free(&model);
}

static void keep_probe(const char *path, uint32_t ratio) {
    keep_noisy_probe(path, ratio, 7);
}

/* If a probe was kept and nothing is measured, the layout follows from the probe and the expected
 * number of sequences. */
static void check_together(const char *path, uint32_t together, const char *asked,
                           const char *layout, bool told) {
    tern_model_params params = tern_model_params_default();
    tern_model *model = NULL;
    params.tune = true;
    params.cache = folder_path;
    params.threads = 2;
    params.layout = asked;
    params.together = together;
    params.no_weights = true;
    assert_int_equal(tern_model_open(path, &params, &model, NULL), TERN_OK);
    assert_string_equal(tern_model_layout(model), layout);
    assert_int_equal(tern_model_layout_reason(model)[0] != '\0', told);
    tern_model_free(&model);
}

static void check_probed(const char *path, const char *asked, const char *layout, bool told) {
    check_together(path, 1, asked, layout, told);
}

/* Keeps the base-3 choice for every ternary matrix of the model. */
static void keep_choices(const char *path) {
    tern_tune_key keys[TERN_TUNE_KEYS];
    tern_model_params params = tern_model_params_default();
    tern_cache_folder *folder = NULL;
    tern_model *model = NULL;
    tern_tuning kept = {.n = 0};
    params.no_weights = true;
    assert_int_equal(tern_model_open(path, &params, &model, NULL), TERN_OK);
    const size_t n = tern_tune_keys(model, 2, keys);
    for (size_t i = 0; i < n; i++) {
        if (keys[i].format != TERN_FORMAT_I2_S)
            continue;
        const tern_tune_choice choice = {
            .key = keys[i],
            .layout = TERN_LAYOUT_T5R16,
            .gemv = tern_guard_select(
                &model->guard, (tern_kernel_use){TERN_OP_GEMV, keys[i].format, TERN_LAYOUT_T5R16}),
            .gemm = tern_guard_select(
                &model->guard, (tern_kernel_use){TERN_OP_GEMM, keys[i].format, TERN_LAYOUT_T5R16})};
        assert_int_equal(tern_tuning_set(&kept, &choice, NULL), TERN_OK);
    }
    assert_int_equal(tern_cache_folder_open(folder_path, &folder, NULL), TERN_OK);
    assert_int_equal(tern_tune_save(folder, &model->guard, &kept, NULL), TERN_OK);
    tern_tuning_free(&kept);
    tern_cache_folder_close(&folder);
    tern_model_free(&model);
}

/* A server's layout follows from passes over its sequences, whatever a single token suggests. */
static void test_probed_together(void **state) {
    char *path = model_path("bitnet-tiny");
    (void)state;
    keep_probe(path, 800);
    check_together(path, 8, NULL, "t5r16", true);  /* 0.9 of the time */
    check_together(path, 16, NULL, "t2r16", true); /* 1.38 */
    check_together(path, 16, "t5r16", "t5r16", false);
    keep_choices(path);
    check_together(path, 1, NULL, "t5r16", true);
    check_together(path, 16, NULL, "t2r16", true);
    unlink(path);
    assert_int_equal(empty_folder(), 1);
    keep_choices(path = model_path("bitnet-tiny"));
    check_together(path, 16, NULL, "t5r16", false); /* no probe: only the choice is known */
    unlink(path);
    assert_int_equal(empty_folder(), 1);
}

static void test_probed(void **state) {
    char *path = model_path("bitnet-tiny"), file[128];
    const uint64_t expected = untuned_answer(path);
    (void)state;
    keep_noisy_probe(path, 800, 151); /* busy machine: noise reaches the margin, not kept */
    check_probed(path, NULL, "t2r16", false);
    keep_probe(path, 800);
    check_probed(path, NULL, "t5r16", true);
    check_probed(path, "tl1r16", "tl1r16", false);
    tern_model *model = open_tuned(path, 2, NULL); /* measures the rest, and keeps the probe */
    assert_true(answer(model, 2) == expected);
    file_of(&model->guard, file, sizeof file);
    tern_model_free(&model);
    keep_probe(path, 990);
    model = NULL;
    assert_int_equal(truncate(file, 50), 0); /* damaged: the table's layout */
    check_probed(path, NULL, "t2r16", false);
    keep_probe(path, 990);
    check_probed(path, NULL, "t2r16", true);
    unlink(path);
    assert_int_equal(empty_folder(), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probed),          cmocka_unit_test(test_probe_of_no_base3),
        cmocka_unit_test(test_round_trip),      cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_hostile),         cmocka_unit_test(test_cores),
        cmocka_unit_test(test_other_machine),   cmocka_unit_test(test_save),
        cmocka_unit_test(test_one_answer),      cmocka_unit_test(test_first_load),
        cmocka_unit_test(test_no_folder),       cmocka_unit_test(test_asked),
        cmocka_unit_test(test_probed_together),
    };
    return cmocka_run_group_tests_name("kept choices", tests, make_folder, remove_folder);
}
