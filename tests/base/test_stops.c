/* SPDX-License-Identifier: Apache-2.0 */
/* Stop strings against a plain search over the whole text, wherever the text is split. */

#include <string.h>

#include "base/stops.h"
#include "tests/support/check.h"

/* Feeds a text byte by byte, as an answer does. *given is how many bytes could have been shown. */
static size_t end_of(const tern_stops *s, const char *text, size_t size, size_t *given) {
    *given = 0;
    for (size_t n = 1; n <= size; n++) {
        const size_t matched = tern_stops_match(s, text, n);
        if (matched > 0)
            return n - matched;
        const size_t held = tern_stops_held(s, text, n);
        assert_true(n - held >= *given); /* text that was shown is never taken back */
        *given = n - held;
    }
    return size;
}

/* The same, beside a finder that must agree at every byte. */
static void check_finder(const tern_stops *s, const char *text, size_t size) {
    tern_stop_finder *f = tern_stop_finder_new(s);
    assert_non_null(f);
    for (size_t n = 1; n <= size; n++) {
        size_t found = 0, which = 0;
        const size_t matched = tern_stops_match(s, text, n);
        assert_int_equal(tern_stop_finder_add(f, text[n - 1], &found, &which), matched > 0);
        assert_int_equal(found, matched);
        if (matched > 0) {
            assert_int_equal(strlen(s->texts[which]), matched);
            assert_memory_equal(s->texts[which], text + n - matched, matched);
            for (size_t i = 0; i < which; i++)
                assert_true(strcmp(s->texts[i], s->texts[which]) != 0);
            break;
        }
        assert_int_equal(tern_stop_finder_held(f), tern_stops_held(s, text, n));
    }
    tern_stop_finder_free(f);
}

/* The definition: the occurrence that ends first; among those, the longest. */
static size_t end_by_search(const tern_stops *s, const char *text, size_t size) {
    size_t end = size + 1;
    size_t begin = size;
    for (size_t i = 0; i < s->n; i++) {
        const size_t n = strlen(s->texts[i]);
        const char *found = n <= size ? memmem(text, size, s->texts[i], n) : NULL;
        if (found == NULL)
            continue;
        const size_t from = (size_t)(found - text);
        if (from + n < end || (from + n == end && from < begin)) {
            end = from + n;
            begin = from;
        }
    }
    return begin;
}

static void check_text(const tern_stops *s, const char *text, size_t size) {
    size_t given;
    const size_t end = end_of(s, text, size, &given);
    check_finder(s, text, size);
    assert_int_equal(end, end_by_search(s, text, size));
    assert_true(given <= end);
}

/* Words over two letters overlap in every way. */
static void test_random_texts(void **state) {
    (void)state;
    check_rng rng = {11};
    for (int round = 0; round < 20000; round++) {
        char words[3][8];
        const char *texts[3];
        for (int w = 0; w < 3; w++) {
            const size_t n = 1 + check_below(&rng, 6);
            for (size_t i = 0; i < n; i++)
                words[w][i] = "ab"[check_below(&rng, 2)];
            words[w][n] = '\0';
            texts[w] = words[w];
        }
        const tern_stops s = {texts, check_below(&rng, 4)};
        char text[40];
        const size_t size = check_below(&rng, sizeof text);
        for (size_t i = 0; i < size; i++)
            text[i] = "abc"[check_below(&rng, 3)];
        check_text(&s, text, size);
    }
}

static void test_known_texts(void **state) {
    (void)state;
    const char *const texts[] = {"\nUser:", "END", "\xe2\x82\xac"};
    const tern_stops s = {texts, 3};
    size_t given;
    assert_int_equal(end_of(&s, "Paris.\nUser: and", 16, &given), 6);
    assert_int_equal(given, 6);
    assert_int_equal(end_of(&s, "EEND", 4, &given), 1);
    assert_int_equal(end_of(&s, "5 \xe2\x82\xac", 5, &given), 2);
    assert_int_equal(end_of(&s, "a\nUse", 5, &given), 5);
    assert_int_equal(given, 1); /* only a possible beginning of a stop is held back */
    assert_int_equal(tern_stops_held(&s, "a\nUsed", 6), 0);
    assert_int_equal(tern_stops_match(&(tern_stops){NULL, 0}, "abc", 3), 0);
    assert_int_equal(tern_stops_held(&(tern_stops){NULL, 0}, "abc", 3), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_texts),
        cmocka_unit_test(test_known_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
