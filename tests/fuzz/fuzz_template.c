/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary chat templates. Three bytes choose the form of the conversation and a limit for the
 * run. Then follow, each up to a NUL, the template, the messages' text, tools, calls and variables.
 * Limits are small, and each value has its own memory from malloc. So every place that may fail is
 * reached soon, and the sanitizer sees reads beyond a value. Templates are mostly changed into
 * others with words of the language.
 */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/text/template/template.h"
#include "tests/fuzz/change_words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t most, unsigned seed);

enum { HEAD = 3 };

/* Bits of the first byte. */
enum {
    LIMITS = 3, /* the limit that the next two bytes set: none, steps, memory, bytes of text */
    SYSTEM = 4,
    SILENT = 8, /* the assistant's messages have no text */
    OTHER_ROLE = 16,
    NO_ANSWER = 32,
    NAMES = 64
};

static const tern_tpl_limits usual = {
    .work = 1 << 16, .memory = 8 << 20, .block = 0, .output = 1 << 18};

/* ---- a conversation -------------------------------------------------------------------------- */

typedef struct parts {
    char *source, *content, *tools, *calls, *variables;
} parts;

static void require(bool condition) {
    if (!condition)
        abort();
}

/* The next part of the input, terminated, in memory from malloc. */
static char *next_part(const uint8_t **data, size_t *size) {
    const uint8_t *end = *size > 0 ? memchr(*data, 0, *size) : NULL;
    const size_t n = end != NULL ? (size_t)(end - *data) : *size;
    char *part = malloc(n + 1);
    require(part != NULL);
    if (n > 0)
        memcpy(part, *data, n);
    part[n] = '\0';
    *data += end != NULL ? n + 1 : n;
    *size -= end != NULL ? n + 1 : n;
    return part;
}

static parts read_parts(const uint8_t *data, size_t size) {
    parts p;
    char **const all[] = {&p.source, &p.content, &p.tools, &p.calls, &p.variables};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i] = next_part(&data, &size);
    return p;
}

static void free_parts(parts *p) {
    free(p->source);
    free(p->content);
    free(p->tools);
    free(p->calls);
    free(p->variables);
}

static const char *unless_empty(const char *text) {
    return text[0] != '\0' ? text : NULL;
}

static void check(const tern_marked_text *text, size_t n_messages) {
    size_t pending = 0;
    require(tern_utf8_repair(text->bytes, text->size, NULL, &pending) == text->size &&
            pending == 0);
    for (size_t i = 0; i < text->size; i++)
        require(text->marks[i] <= n_messages || text->marks[i] == TERN_MARK_VARIABLES);
}

/* Runs the template. Its text, if there is one, must be sound. */
static tern_status run(const parts *p, uint8_t kind, const tern_tpl_limits *limits,
                       tern_marked_text *text) {
    const bool names = (kind & NAMES) != 0;
    const char *calls = unless_empty(p->calls);
    const tern_chat_message messages[] = {
        {.role = "system", .content = p->content},
        {.role = kind & OTHER_ROLE ? "critic" : "user",
         .content = p->content,
         .name = names ? "Ann" : NULL},
        {.role = "assistant", .content = kind & SILENT ? NULL : p->content, .tool_calls = calls},
        {.role = "tool", .content = p->content, .tool_call_id = names ? "call_1" : NULL}};
    const size_t first = kind & SYSTEM ? 0 : 1;
    const size_t n = (calls != NULL ? 4 : 3) - first;
    const tern_conversation c = {.messages = messages + first,
                                 .n = n,
                                 .tools = unless_empty(p->tools),
                                 .variables = unless_empty(p->variables),
                                 .no_answer = (kind & NO_ANSWER) != 0};
    const tern_template_token tokens[] = {{"bos_token", {"<s>", 3}}, {"eos_token", {"</s>", 4}}};
    const tern_template_input input = {
        .conversation = &c, .tokens = tokens, .n_tokens = 2, .limits = limits};
    tern_error err = {0};
    const tern_span whole = {p->source, strlen(p->source)};
    const tern_status status = tern_template_run(whole, &input, text, &err);
    if (status == TERN_OK)
        check(text, n);
    else
        require(err.message[0] != '\0' && text->size == 0);
    return status;
}

/* ---- changes --------------------------------------------------------------------------------- */

static const char *const words[] = {
    "{{ ",
    " }}",
    "{{- ",
    " -}}",
    "{% ",
    " %}",
    "{%- ",
    " -%}",
    "{%+ ",
    " +%}",
    "{# ",
    " #}",
    "{#- ",
    " -#}",
    "{% if ",
    "{% elif ",
    "{% else %}",
    "{% endif %}",
    "{% for i in ",
    "{% for a, b in ",
    "{% endfor %}",
    "{% break %}",
    "{% continue %}",
    "{% set x = ",
    "{% set x %}",
    "{% set x | upper %}",
    "{% endset %}",
    "{% set ns = namespace(n=0) %}",
    "{% set ns.n = ",
    "{% set a, b = ",
    "{% macro m(a, b=1) %}",
    "{% endmacro %}",
    "m(1)",
    "caller()",
    "{% call m(1) %}",
    "{% call(y) m(2) %}",
    "{% endcall %}",
    "{% filter upper %}",
    "{% endfilter %}",
    "{% with a = 1, b = 'x' %}",
    "{% endwith %}",
    "{% generation %}",
    "{% endgeneration %}",
    "{% raw %}",
    "{% endraw %}",
    "{%- raw -%}",
    "{%- endraw -%}",
    "recursive",
    " if ",
    " else ",
    " and ",
    " or ",
    " not ",
    " in ",
    " not in ",
    " is ",
    " is not ",
    " + ",
    " - ",
    " * ",
    " / ",
    " // ",
    " % ",
    " ~ ",
    " == ",
    " != ",
    " <= ",
    " >= ",
    " < ",
    " > ",
    "**",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    ".",
    "|",
    "=",
    "|trim",
    "|trim('x')",
    "|upper",
    "|lower",
    "|title",
    "|capitalize",
    "|replace('a', 'b')",
    "|replace('', '-', 2)",
    "|string",
    "|indent",
    "|indent(2, true, blank=true)",
    "|indent('> ')",
    "|int",
    "|int(7, 10)",
    "|float",
    "|float(2.5)",
    "|abs",
    "|round",
    "|round(2, 'ceil')",
    "|round(method='floor')",
    "|default('d')",
    "|d(1, true)",
    "|length",
    "|count",
    "|items",
    "|safe",
    "|tojson",
    "|tojson(indent=1)",
    "|tojson(ensure_ascii=true, sort_keys=true, separators=(',', ':'))",
    "|first",
    "|last",
    "|list",
    "|reverse",
    "|join",
    "|join(', ', attribute='n')",
    "|sum",
    "|sum(attribute='a', start=1)",
    "|sort",
    "|sort(reverse=true, case_sensitive=true, attribute='n')",
    "|dictsort",
    "|dictsort(by='value', reverse=true)",
    "|unique",
    "|unique(attribute='n')",
    "|min",
    "|max",
    "|select",
    "|select('in', 'ab')",
    "|reject('odd')",
    "|selectattr('a', 'gt', 1)",
    "|rejectattr('role', 'equalto', 'user')",
    "|map('upper')",
    "|map(attribute='in.k', default=0)",
    "|map(attribute=0)",
    " defined",
    " undefined",
    " none",
    " boolean",
    " true",
    " false",
    " integer",
    " float",
    " number",
    " string",
    " mapping",
    " callable",
    " sequence",
    " iterable",
    " upper",
    " lower",
    " odd",
    " even",
    " divisibleby 2",
    " eq 1",
    " equalto('a')",
    " ne none",
    " lt 2",
    " lessthan 2",
    " le 2",
    " gt 2",
    " greaterthan 2",
    " ge 2",
    " in [1]",
    " sameas none",
    ".strip()",
    ".lstrip('x')",
    ".rstrip()",
    ".split()",
    ".split(',', 1)",
    ".rsplit(none, 1)",
    ".rsplit('a')",
    ".splitlines(true)",
    ".startswith('a')",
    ".endswith(('a', 'b'))",
    ".removeprefix('a')",
    ".removesuffix('a')",
    ".replace('a', 'b', 1)",
    ".find('a')",
    ".rfind('a')",
    ".count('a')",
    ".format(1, n=2)",
    ".join(['a', 'b'])",
    ".upper()",
    ".title()",
    ".isdigit()",
    ".isalpha()",
    ".isspace()",
    ".get('k', 1)",
    ".keys()",
    ".values()",
    ".items()",
    ".copy()",
    ".index(1)",
    ".append(1)",
    "[0]",
    "[-1]",
    "[1:]",
    "[::-1]",
    "[:2:1]",
    "['role']",
    ".role",
    ".content",
    ".tool_calls",
    ".function.arguments",
    ".name",
    ".x",
    ".0",
    "loop.index",
    "loop.index0",
    "loop.revindex",
    "loop.first",
    "loop.last",
    "loop.length",
    "loop.previtem",
    "loop.nextitem",
    "loop.cycle('a', 'b')",
    "loop.changed(i)",
    "range(3)",
    "range(5, 1, -2)",
    "dict(a=1)",
    "namespace()",
    "raise_exception('no')",
    "strftime_now('%Y')",
    "messages",
    "messages[0]",
    "tools",
    "documents",
    "bos_token",
    "add_generation_prompt",
    "n",
    "f",
    "words",
    "people",
    "d",
    "pairs",
    "x",
    "i",
    "ns",
    "zz",
    "none",
    "true",
    "false",
    "0",
    "1",
    "-1",
    "7",
    "1.5",
    "1e300",
    "0.00001",
    "9223372036854775807",
    "1_0",
    "''",
    "'a'",
    "\"b'\"",
    "'\\n\\x41'",
    "'\\u00e9'",
    "'\\U0001f642'",
    "'{}{0}'",
    "'a,b;c'",
    "[]",
    "[1, 2]",
    "['b', 'A', 'b']",
    "{}",
    "{'k': 1, 'b': [2]}",
    "()",
    "(1,)",
    "(1, 'x')",
    "\n",
    "  ",
    "\t"};

/* A limit of 4 to 11 bits, about as much as most templates use. */
static void change_head(uint8_t *data, unsigned seed) {
    const unsigned limit = (seed >> 9 & 0x7ff) >> (seed >> 6 & 7);
    data[0] = (uint8_t)(data[0] ^ (1u << (seed >> 28 & 7)));
    data[0] = (uint8_t)((data[0] & (0xffu ^ LIMITS)) | (seed >> 3 & LIMITS));
    data[1] = (uint8_t)limit;
    data[2] = (uint8_t)(limit >> 8);
}

static size_t change_text(uint8_t *data, size_t size, size_t most, const uint8_t *other,
                          size_t other_size, unsigned seed) {
    return HEAD + change_words(words, sizeof words / sizeof *words, (char *)data + HEAD,
                               size - HEAD, most - HEAD, (const char *)other, other_size, seed);
}

/* One change in eight affects arbitrary bytes, and one affects the head. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    if (size < HEAD || most < HEAD || seed % 8 == 0)
        return LLVMFuzzerMutate(data, size, most);
    if (seed % 8 > 1)
        return change_text(data, size, most, NULL, 0, seed);
    change_head(data, seed);
    return size;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t most, unsigned seed) {
    if (a_size < HEAD || b_size <= HEAD || a_size > most)
        return 0;
    memcpy(out, a, a_size);
    return change_text(out, a_size, most, b + HEAD, b_size - HEAD, seed);
}

/* ---- an input -------------------------------------------------------------------------------- */

/* A run with a tighter limit gives the same text, if it gives any. This need not hold if the
 * template may be tried in a second way after the first one met the limit. */
static void run_limited(const parts *p, const uint8_t *head, tern_status status,
                        const tern_marked_text *text) {
    const size_t limit = head[1] | (size_t)head[2] << 8;
    const bool one_way = p->calls[0] == '\0' && (head[0] & SILENT) == 0;
    tern_tpl_limits limits = usual;
    tern_marked_text other = {0};
    if ((head[0] & LIMITS) == 1)
        limits.work = limit;
    else if ((head[0] & LIMITS) == 2)
        limits.memory = 16 * limit;
    else
        limits.output = limit;
    if (run(p, head[0], &limits, &other) == TERN_OK && one_way)
        require(status == TERN_OK && other.size == text->size &&
                (text->size == 0 || (memcmp(other.bytes, text->bytes, text->size) == 0 &&
                                     memcmp(other.marks, text->marks, text->size) == 0)));
    tern_marked_free(&other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    tern_marked_text text = {0};
    if (size < HEAD)
        return 0;
    parts p = read_parts(data + HEAD, size - HEAD);
    const tern_status status = run(&p, data[0], &usual, &text);
    if ((data[0] & LIMITS) != 0)
        run_limited(&p, data, status, &text);
    const tern_status checked = tern_template_check((tern_span){p.source, strlen(p.source)}, NULL);
    require(status != TERN_OK || checked == TERN_OK);
    tern_marked_free(&text);
    free_parts(&p);
    return 0;
}
