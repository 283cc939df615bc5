/* SPDX-License-Identifier: Apache-2.0 */
/* Each kind of tokenizer.json when each allocation fails in turn: it is opened and gives the ids,
 * or there is one clear error; whichever it is, no memory is left. */
#include <string.h>

#include "runtime/text/tokenizer/normalize.h"
#include "runtime/text/tokenizer/tokenizer.h"
#include "tests/support/check.h"
#include "tests/support/failing_malloc.h"

enum { MOST_IDS = 64, MOST_ALLOCATIONS = 100000 };

#define ADDED "\"added_tokens\": [{\"id\": 1, \"content\": \"<s>\", \"special\": true}], "
#define METASPACE "{\"type\": \"Metaspace\", \"replacement\": \"\\u2581\"}"

typedef struct json_case {
    const char *kind, *json;
    bool normalizes; /* needs utf8proc */
} json_case;

static const json_case cases[] = {
    {"byte-level BPE",
     "{" ADDED
     "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", "
     "\"pattern\": {\"Regex\": \"\\\\s+|[a-c]+\"}, \"behavior\": \"Isolated\"}, {\"type\": "
     "\"ByteLevel\", "
     "\"add_prefix_space\": false, \"use_regex\": false}]}, "
     "\"decoder\": {\"type\": \"ByteLevel\"}, \"model\": {\"type\": \"BPE\", \"vocab\": "
     "{\"a\": 0, \"b\": 2, \"ab\": 3, \"\\u0120\": 4}, \"merges\": [\"a b\"]}}",
     false},
    {"Unigram",
     "{" ADDED "\"pre_tokenizer\": " METASPACE ", \"decoder\": " METASPACE
     ", \"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"?\", 0], [\"<s>\", 0], "
     "[\"a\", -1], [\"b\", -2], [\"\\u2581\", -3]]}}",
     false},
    {"WordPiece",
     "{" ADDED "\"normalizer\": {\"type\": \"BertNormalizer\"}, \"pre_tokenizer\": {\"type\": "
     "\"BertPreTokenizer\"}, \"decoder\": {\"type\": \"WordPiece\", \"prefix\": \"##\", "
     "\"cleanup\": true}, \"model\": {\"type\": \"WordPiece\", \"vocab\": {\"[UNK]\": 0, "
     "\"<s>\": 1, \"a\": 2, \"##b\": 3, \"b\": 4}}}",
     true},
    {"longest match",
     "{\"<s>\": 0, \"</s>\": 1, \"<unk>\": 2, \"\\u2581\": 3, \"a\": 4, \"b\": 5, \"ab\": 6}",
     false},
};

/* Opens the tokenizer and returns the number of ids in *n; both must be able to fail. */
static tern_status ids_of(const json_case *c, int32_t *ids, size_t *n, tern_error *err) {
    static const char text[] = "ab <s> ba";
    tern_vocabulary *v = NULL;
    tern_tokenizer *t = NULL;
    char *json = strdup(c->json); /* taken over */
    if (json == NULL)
        return TERN_ERR_NOMEM;
    tern_status status = tern_vocabulary_parse(json, strlen(json), "v.json", &v, err);
    if (status == TERN_OK)
        status = tern_tokenizer_build(v, NULL, &t, err);
    tern_vocabulary_free(&v);
    if (status == TERN_OK) {
        assert_string_equal(tern_tokenizer_kind(t), c->kind);
        status =
            tern_tokenize(t, text, sizeof text - 1, TERN_TOKENIZE_PARSE, ids, MOST_IDS, n, err);
    }
    tern_tokenizer_free(&t);
    return status;
}

/* Opens without allocation n. Fails unless that gives the ids or TERN_ERR_NOMEM, and leaves
 * nothing. */
static tern_status without_allocation(const json_case *c, size_t n, const int32_t *ids,
                                      size_t size) {
    int32_t got[MOST_IDS];
    size_t n_got = 0;
    tern_error err = {0};
    const long before = allocations_live;
    allocations_asked = 0;
    allocation_that_fails = n;
    const tern_status status = ids_of(c, got, &n_got, &err);
    allocation_that_fails = 0;
    check_case("%s, allocation %zu: %s", c->kind, n, err.message);
    if (allocations_live != before)
        check_fail("%ld blocks are left", allocations_live - before);
    if (status != TERN_OK && status != TERN_ERR_NOMEM)
        check_fail("status %d", (int)status);
    if (status == TERN_OK && (n_got != size || memcmp(got, ids, size * sizeof *ids) != 0))
        check_fail("other ids");
    return status;
}

static void test_no_memory(void **state) {
    (void)state;
    if (!ALLOCATIONS_CAN_FAIL)
        check_skip("a sanitizer has allocations of its own");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t ids[MOST_IDS];
        size_t n = 0, k = 1;
        tern_error err = {0};
        if (cases[i].normalizes && !tern_can_normalize())
            continue;
        if (ids_of(&cases[i], ids, &n, &err) != TERN_OK)
            fail_msg("%s: %s", cases[i].kind, err.message);
        assert_in_range(n, 4, MOST_IDS);
        while (k < MOST_ALLOCATIONS && without_allocation(&cases[i], k, ids, n) != TERN_OK)
            k++;
        assert_in_range(k, 10, MOST_ALLOCATIONS - 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
