/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of what a model file has: weights, and what is said of them. */
#include <unistd.h>

#include "runtime/model/image/file_content.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

static uint64_t content_of(const tiny_file *model) {
    char path[TINY_PATH_BYTES];
    tern_gguf *file;
    tern_team *team;
    tiny_path(path);
    tiny_write(model, path);
    assert_int_equal(tern_gguf_open(path, &file, NULL), TERN_OK);
    assert_int_equal(tern_team_new(2, &team, NULL), TERN_OK);
    const uint64_t content = tern_content_read(file, team);
    tern_team_free(&team);
    tern_gguf_close(&file);
    (void)unlink(path);
    return content;
}

/* Two tensors that exchange their weights are other content, though the bytes are the same. */
static void test_swapped_weights(void **state) {
    (void)state;
    tiny_file model = tiny_read("bitnet-tiny");
    tiny_tensor *a = tiny_find(&model, "blk.0.attn_q.weight");
    tiny_tensor *b = tiny_find(&model, "blk.1.attn_q.weight");
    const uint64_t before = content_of(&model);
    assert_int_equal(a->bytes, b->bytes);
    uint8_t *data = a->data;
    a->data = b->data;
    b->data = data;
    assert_true(content_of(&model) != before);
    b->data = a->data;
    a->data = data;
    assert_true(content_of(&model) == before);
    tiny_file_free(&model);
}

/* A tensor's name, type and shape are content, too. */
static void test_described_weights(void **state) {
    enum { F16 = 1, BF16 = 30 }; /* types of GGUF */
    (void)state;
    tiny_file model = tiny_read("bitnet-tiny");
    tiny_tensor *t = tiny_find(&model, "token_embd.weight");
    const tiny_tensor same = *t;
    const uint64_t before = content_of(&model);
    assert_int_equal(t->type, F16);
    t->type = BF16; /* as many bytes */
    assert_true(content_of(&model) != before);
    *t = same;
    t->ne[0] = same.ne[1];
    t->ne[1] = same.ne[0];
    assert_true(content_of(&model) != before);
    *t = same;
    t->name[0] = 'T';
    assert_true(content_of(&model) != before);
    *t = same;
    assert_true(content_of(&model) == before);
    tiny_file_free(&model);
}

static uint64_t sample_of(const uint8_t *data, uint64_t bytes) {
    const tern_gguf_tensor t = {.data = data, .bytes = bytes};
    tern_hash64 h;
    tern_hash64_start(&h);
    tern_content_sample(&h, &t);
    return tern_hash64_value(&h);
}

/* A sample covers beginning, end and two places between, or the whole of a short tensor. */
static void test_samples(void **state) {
    enum { BYTES = 30064 }; /* four places of 64 bytes, 10,000 apart */
    static uint8_t data[BYTES];
    (void)state;
    const uint64_t whole = sample_of(data, BYTES), part = sample_of(data, 50);
    for (size_t i = 0; i < BYTES; i++) {
        data[i] ^= 1;
        if ((sample_of(data, BYTES) != whole) != (i % 10000 < 64))
            check_fail("byte %zu", i);
        if ((sample_of(data, 50) != part) != (i < 50))
            check_fail("byte %zu of 50", i);
        data[i] ^= 1;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_swapped_weights),
                                       cmocka_unit_test(test_described_weights),
                                       cmocka_unit_test(test_samples)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
