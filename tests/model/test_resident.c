/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a model's file that stay resident: not those of packed matrices, nor of a whole file
 * that was read for its hash. There are no huge pages where only rows are read, and a cache has
 * them.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "authoring/synth.h"
#include "runtime/engine/cache/pool.h"
#include "runtime/model/image/file_content.h"
#include "runtime/model/model.h"
#include "tests/support/check.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/tiny_model.h"

static int pages = -1; /* /proc/self/pagemap */

static char path[TINY_PATH_BYTES];

static int make_path(void **state) {
    (void)state;
    tiny_path(path);
    return 0;
}

static int remove_path(void **state) {
    (void)state;
    return unlink(path);
}

/* Number of whole pages in [data, data + bytes) that this process has mapped. */
static size_t count_mapped(const void *data, size_t bytes) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t end = ((uintptr_t)data + bytes) / page;
    size_t n = 0;
    for (uintptr_t p = ((uintptr_t)data + page - 1) / page; p < end; p++) {
        uint64_t entry;
        assert_int_equal(pread(pages, &entry, sizeof entry, (off_t)(p * sizeof entry)),
                         sizeof entry);
        n += (size_t)(entry >> 63);
    }
    return n;
}

/* A file with one tensor of that many bytes. */
static void write_large(size_t bytes) {
    gguf_bytes b = {NULL, 0};
    gguf_add_header(&b, 3, 1, 0);
    gguf_add_tensor(&b, "large", 24, bytes, 0, 0);
    gguf_align(&b, 32);
    gguf_add_zeros(&b, bytes);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(b.data, 1, b.size, file), b.size);
    assert_int_equal(fclose(file), 0);
    gguf_bytes_free(&b);
}

/* One huge page may bring back the end of a piece with the beginning of the next one. */
static void test_hashed_file(void **state) {
    const size_t bytes = (size_t)40 << 20;
    tern_gguf *file;
    (void)state;
    write_large(bytes);
    assert_int_equal(tern_gguf_open(path, &file, NULL), TERN_OK);
    const tern_gguf_tensor *t = tern_gguf_find_tensor(file, "large");
    uint64_t first = 0;
    for (uint32_t threads = 1; threads <= 2; threads++) {
        tern_team *team;
        assert_int_equal(tern_team_new(threads, &team, NULL), TERN_OK);
        const uint64_t content = tern_content_read(file, team);
        tern_team_free(&team);
        first = threads == 1 ? content : first;
        assert_true(content == first);
        const size_t mapped = count_mapped(t->data, bytes) * (size_t)sysconf(_SC_PAGESIZE);
        if (mapped > bytes * 3 / 4)
            check_fail("%zu of %zu bytes are mapped, %u threads", mapped, bytes, threads);
    }
    tern_gguf_close(&file);
}

/* Without huge pages, only the pages at the border of two pieces stay. */
static void test_hashed_file_of_parts(void **state) {
    const size_t bytes = (size_t)40 << 20;
    tern_gguf *file;
    tern_team *team;
    (void)state;
    write_large(bytes);
    assert_int_equal(tern_gguf_open(path, &file, NULL), TERN_OK);
    const tern_gguf_tensor *t = tern_gguf_find_tensor(file, "large");
    tern_gguf_expect_parts(file);
    assert_int_equal(tern_team_new(1, &team, NULL), TERN_OK);
    (void)tern_content_read(file, team);
    tern_team_free(&team);
    const size_t mapped = count_mapped(t->data, bytes) * (size_t)sysconf(_SC_PAGESIZE);
    if (mapped > bytes / 4)
        check_fail("%zu of %zu bytes are mapped", mapped, bytes);
    tern_gguf_close(&file);
}

static tern_model *open_preset(const char *preset) {
    tern_error err = {.status = TERN_OK};
    const tern_model_params params = {.threads = 2};
    tern_model *model = NULL;
    if (tern_synth(preset, path, TERN_OUT_REPLACE, 1, NULL, NULL, &err) != TERN_OK ||
        tern_model_open(path, &params, &model, &err) != TERN_OK)
        check_fail("%s", err.message);
    return model;
}

static void test_packed_matrices(void **state) {
    tern_model *model = open_preset("bitnet-tiny");
    const tern_linear *linear;
    size_t packed = 0;
    (void)state;
    for (size_t i = 0; (linear = tern_model_linear(model, i)) != NULL; i++) {
        const tern_gguf_tensor *t = linear->tensor;
        if (linear->matrix.layout == TERN_LAYOUT_ROWS || linear == &model->image.scan)
            continue;
        packed++;
        check_case("%.*s", (int)t->name.size, t->name.data);
        assert_int_equal(count_mapped(t->data, (size_t)t->bytes), 0);
    }
    assert_true(packed > 0);
    tern_model_free(&model);
}

/* True if the kernel was advised about the memory at an address: "nh" means no huge pages, "hg"
 * huge pages. */
static bool has_flag(const void *address, const char *flag) {
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[512];
    bool inside = false, found = false;
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long long begin, end;
        if (sscanf(line, "%llx-%llx ", &begin, &end) == 2)
            inside = (uintptr_t)address >= begin && (uintptr_t)address < end;
        else if (inside && strncmp(line, "VmFlags:", 8) == 0)
            found = strstr(line, flag) != NULL;
    }
    (void)fclose(maps);
    return found;
}

/* Files whose whole matrices are read for each token keep their huge pages. */
static void test_huge_pages(void **state) {
    (void)state;
    if (access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) != 0)
        check_skip("this system has no huge pages");
    tern_model *model = open_preset("bitnet-tiny");
    assert_true(has_flag(model->own.head.tensor->data, " nh"));
    tern_model_free(&model);
    model = open_preset("llama-tiny-f16");
    assert_false(has_flag(model->own.head.tensor->data, " nh"));
    tern_model_free(&model);
}

/* A cache fills from the front and is read from end to end, so it gets huge pages. */
static void test_huge_pages_of_a_cache(void **state) {
    (void)state;
    tern_pool pool;
    int refused = 0;
    if (access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) != 0)
        check_skip("this system has no huge pages");
    tern_model *model = open_preset("bitnet-tiny");
    const tern_pool_size size = {.pages = 1024};
    assert_int_equal(tern_pool_open(model, TERN_FORMAT_F32, size, &pool, &refused, NULL), TERN_OK);
    assert_true(pool.arena.size >= 2 * (size_t)TERN_HUGE_PAGE_BYTES);
    assert_true(has_flag(pool.parts[TERN_PART_ALL].k, " hg"));
    tern_pool_close(&pool);
    tern_model_free(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_hashed_file, make_path, remove_path),
        cmocka_unit_test_setup_teardown(test_hashed_file_of_parts, make_path, remove_path),
        cmocka_unit_test_setup_teardown(test_packed_matrices, make_path, remove_path),
        cmocka_unit_test_setup_teardown(test_huge_pages, make_path, remove_path),
        cmocka_unit_test_setup_teardown(test_huge_pages_of_a_cache, make_path, remove_path),
    };
    pages = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (pages < 0) {
        printf("skipped: this system does not tell which pages are in memory\n");
        return 77;
    }
    return cmocka_run_group_tests_name("resident", tests, NULL, NULL);
}
