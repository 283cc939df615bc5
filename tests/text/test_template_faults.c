/* SPDX-License-Identifier: Apache-2.0 */
/* A chat template when each allocation fails in turn, and within each limit of memory: it gives the
 * text, or one clear error and leaks nothing. */
#include <string.h>

#include "runtime/text/template/template.h"
#include "tests/support/check.h"
#include "tests/support/failing_malloc.h"

/* Uses lists, dicts, loops, macros, name spaces, filters, methods, tests, tools and calls. */
static const char source[] =
    "{%- set ns = namespace(n=0, names=[]) -%}"
    "{%- macro line(role, text='') -%}<{{ role | upper }}>{{ text | trim }}{%- endmacro -%}"
    "{%- for t in tools or [] -%}{{ t | tojson(indent=2) }}{%- endfor -%}"
    "{%- for m in messages if m.role != 'system' -%}"
    "{%- set ns.n = ns.n + loop.index -%}{%- set ns.names = ns.names + [m.role] -%}"
    "{%- if m.tool_calls is defined and m.tool_calls -%}"
    "{%- for c in m.tool_calls -%}{{ c.function.name }}({{ c.function.arguments | tojson }})"
    "{%- endfor -%}{%- else -%}{{ line(m.role, text=m.content.replace('a', 'bb')[:40]) }}"
    "{{ m.content.split(' ') | join('+') }}{%- endif -%}{%- endfor -%}"
    "{{ ns.names | unique | list | length }}:{{ ns.n }}{{ {'k': 1}.items() | list }}"
    "{{ [[7, 8], [9]] | map(attribute=0) | join }}{{ [['b'], ['a']] | sort(attribute=0) }}"
    "{% if add_generation_prompt %}{{ bos_token ~ 'answer' }}{% endif %}";

static const tern_chat_message messages[] = {
    {.role = "system", .content = "Be brief"},
    {.role = "user", .content = "a question with some words"},
    {.role = "assistant",
     .tool_calls = "[{\"id\": \"1\", \"type\": \"function\", \"function\": {\"name\": \"look\", "
                   "\"arguments\": \"{\\\"at\\\": [1, 2.5, null]}\"}}]"},
    {.role = "tool", .content = "found", .tool_call_id = "1", .name = "look"}};
static const tern_conversation talk = {
    .messages = messages,
    .n = sizeof messages / sizeof *messages,
    .tools = "[{\"type\": \"function\", \"function\": {\"name\": \"look\", \"parameters\": {}}}]",
    .variables = "{\"extra\": {\"deep\": [true, \"x\"]}}"};

static tern_status run(const tern_tpl_limits *limits, tern_marked_text *out, tern_error *err) {
    const tern_template_token bos = {.name = "bos_token", .text = {"<s>", 3}};
    const tern_template_input input = {
        .conversation = &talk, .tokens = &bos, .n_tokens = 1, .limits = limits};
    return tern_template_run((tern_span){source, sizeof source - 1}, &input, out, err);
}

static void test_no_memory(void **state) {
    (void)state;
    if (!ALLOCATIONS_CAN_FAIL)
        check_skip("a sanitizer has allocations of its own");
    tern_marked_text whole = {0};
    tern_error err = {0};
    assert_int_equal(run(NULL, &whole, &err), TERN_OK);
    assert_non_null(memmem(whole.bytes, whole.size, "<USER>bb question", 17));
    assert_non_null(memmem(whole.bytes, whole.size, "<s>answer", 9));
    tern_status status = TERN_ERR_NOMEM;
    long n = 0;
    for (; status != TERN_OK && n < 100000; n++) {
        tern_marked_text out = {0};
        err = (tern_error){0};
        const long before = allocations_live;
        allocations_asked = 0;
        allocation_that_fails = (size_t)n + 1;
        status = run(NULL, &out, &err);
        const bool told = allocations_asked > (size_t)n;
        allocation_that_fails = 0;
        check_case("allocation %ld: %s", n, err.message);
        if (status != TERN_OK && !(status == TERN_ERR_NOMEM && told))
            check_fail("status %d", (int)status);
        if (status == TERN_OK &&
            (out.size != whole.size || memcmp(out.bytes, whole.bytes, out.size) != 0))
            check_fail("another text");
        tern_marked_free(&out);
        if (allocations_live != before)
            check_fail("%ld blocks are left", allocations_live - before);
    }
    assert_int_equal(status, TERN_OK);
    assert_true(n > 10);
    tern_marked_free(&whole);
}

/* Each value has its own memory here, so each place that allocates meets the limit once. When the
 * first way to run a template meets it, another way may give a different text. */
static void test_limit_of_memory(void **state) {
    (void)state;
    tern_tpl_limits limits = tern_tpl_usual;
    tern_marked_text whole = {0};
    tern_error err = {0};
    bool same = false;
    assert_int_equal(run(NULL, &whole, &err), TERN_OK);
    limits.block = 0;
    for (limits.memory = 0; !same && limits.memory < 1 << 20; limits.memory += 16) {
        tern_marked_text out = {0};
        err = (tern_error){0};
        const tern_status status = run(&limits, &out, &err);
        check_case("%zu bytes: %s", limits.memory, err.message);
        if (status != TERN_OK && (status != TERN_ERR_TEMPLATE || out.size != 0 ||
                                  strstr(err.message, "of memory are needed") == NULL))
            check_fail("status %d", (int)status);
        same = out.size == whole.size && memcmp(out.bytes, whole.bytes, out.size) == 0;
        tern_marked_free(&out);
    }
    assert_true(same && limits.memory > 4096);
    tern_marked_free(&whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_memory),
                                       cmocka_unit_test(test_limit_of_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
