/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/interfaces/call_probe.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_tree/read.h"
#include "serve/interfaces/call_derive.h"
#include "serve/interfaces/call_text.h"
#include "serve/interfaces/thinking.h"

#define TOLD "tells whether tools are told"
#define TOOL(name)                                                                                 \
    "{\"type\":\"function\",\"function\":{\"name\":\"" name "\",\"description\":\"" TOLD           \
    "\",\"parameters\":{\"type\":\"object\",\"properties\":{\"a_text\":{\"type\":\"string\"},"     \
    "\"b_text\":{\"type\":\"string\"},\"c_number\":{\"type\":\"integer\"},\"d_number\":{\"type\":" \
    "\"integer\"}},\"required\":[\"a_text\"]}}}"

static const char probe_tools[] = "[" TOOL(CALL_PROBE_FIRST) "," TOOL(CALL_PROBE_SECOND) "]";

/* Arguments of all types, with what is hard to write. */
static const char hard_arguments[] =
    "{\"a_text\":\"say \\\"yes\\\" <b>\\n  it's \\u00fc, \\\\d: {x}\",\"b_text\":\"7\\u20ac\","
    "\"c_number\":-12,\"d_number\":2.5,\"e_flag\":true,\"f_list\":[1,\"two\",false],"
    "\"g_object\":{\"k\":\"v w\",\"n\":3}}";

/* ---- what a template writes ------------------------------------------------------------------ */

typedef struct probe {
    const tern_tokenizer *tokenizer;
    const char *ids[2];
} probe;

/* A conversation as text; the caller frees it. NULL: the template refuses it, or no memory. */
static char *render(const probe *p, const tern_chat_message *messages, size_t n, bool answer) {
    const tern_conversation talk = {
        .messages = messages, .n = n, .tools = probe_tools, .no_answer = !answer};
    tern_error err = {0};
    size_t size = 0;
    if (tern_conversation_text(p->tokenizer, &talk, NULL, NULL, 0, &size, &err) != TERN_OK)
        return NULL;
    char *bytes = malloc(size + 1);
    if (bytes == NULL ||
        tern_conversation_text(p->tokenizer, &talk, bytes, NULL, size, &size, &err) != TERN_OK) {
        free(bytes);
        return NULL;
    }
    bytes[size] = '\0';
    return bytes;
}

/* A conversation with n calls, and perhaps their results. */
static char *render_calls(const probe *p, size_t n, const char *arguments, bool results) {
    static const char *const names[] = {CALL_PROBE_FIRST, CALL_PROBE_SECOND};
    text calls = {0};
    for (size_t i = 0; i < n; i++)
        text_print(&calls,
                   "%s{\"id\":\"%s\",\"type\":\"function\",\"function\":{\"name\":\"%s\","
                   "\"arguments\":%s}}",
                   i > 0 ? "," : "[", p->ids[i], names[i], arguments);
    text_print(&calls, "]");
    tern_chat_message messages[4] = {{.role = "user", .content = CALL_PROBE_ASKED},
                                     {.role = "assistant", .tool_calls = calls.bytes}};
    for (size_t i = 0; i < n; i++)
        messages[2 + i] = (tern_chat_message){
            .role = "tool", .content = "y", .tool_call_id = p->ids[i], .name = names[i]};
    char *written = calls.failed ? NULL : render(p, messages, results ? 2 + n : 2, results);
    text_free(&calls);
    return written;
}

/* ---- reading it back ------------------------------------------------------------------------- */

enum { MOST_SEEN = 4 };

/* The calls that a reader found. */
typedef struct seen {
    char names[MOST_SEEN][CALL_NAME_BYTES];
    text arguments[MOST_SEEN];
    size_t n;
} seen;

static void skip_text(void *user, const char *bytes, size_t size) {
    (void)user;
    (void)bytes;
    (void)size;
}

static void note_name(void *user, const char *name) {
    seen *all = user;
    const size_t i = all->n < MOST_SEEN ? all->n++ : MOST_SEEN - 1;
    (void)strcpy(all->names[i], name);
    text_clear(&all->arguments[i]);
}

static void note_arguments(void *user, const char *bytes, size_t size) {
    seen *all = user;
    text_add(&all->arguments[all->n - 1], bytes, size);
}

static void note_end(void *user) {
    (void)user;
}

static bool same_json(const text *got, const char *wanted) {
    json_t *a = got->size > 0 ? json_read(got->bytes, got->size, "", NULL) : NULL;
    json_t *b = json_read(wanted, strlen(wanted), "", NULL);
    const bool same = a != NULL && json_equal(a, b);
    json_decref(a);
    json_decref(b);
    return same;
}

/* True if the last n calls that a form finds in a text are the probe's. */
static bool finds(const call_form *f, const char *written, size_t n, const char *arguments) {
    static const char *const names[] = {CALL_PROBE_FIRST, CALL_PROBE_SECOND};
    seen all = {.n = 0};
    call_reader reader = {.form = f};
    const call_sink sink = {&all, skip_text, note_name, note_arguments, note_end};
    call_reader_take(&reader, &sink, written, strlen(written));
    call_reader_free(&reader);
    bool found = all.n >= n;
    for (size_t i = 0; i < n && found; i++) {
        const size_t at = all.n - n + i;
        found = strcmp(all.names[at], names[i]) == 0 && same_json(&all.arguments[at], arguments);
    }
    for (size_t i = 0; i < MOST_SEEN; i++)
        text_free(&all.arguments[i]);
    return found;
}

/* ---- forms that have a name ------------------------------------------------------------------ */

static const char plain_arguments[] = "{\"a_text\":\"quick brown\",\"c_number\":7301}";

/* A call alone is found wherever it stands: its form has no mark but a brace. */
static bool finds_bare(const char *written) {
    for (const char *at = strchr(written, '{'); at != NULL; at = strchr(at + 1, '{'))
        if (finds(call_form_of(CALL_BARE), at, 1, plain_arguments))
            return true;
    return false;
}

static bool find_named(const probe *p, call_form *out) {
    static const call_style marked[] = {CALL_TAGGED, CALL_LISTED, CALL_NAMED};
    bool found = false;
    for (int results = 1; results >= 0 && !found; results--) {
        char *written = render_calls(p, 1, plain_arguments, results == 1);
        const char *asked = written != NULL ? strstr(written, CALL_PROBE_ASKED) : NULL;
        for (size_t i = 0; i < 3 && asked != NULL && !found; i++) {
            *out = *call_form_of(marked[i]);
            found = finds(out, asked, 1, plain_arguments);
        }
        if (asked != NULL && !found) {
            *out = *call_form_of(CALL_BARE);
            found = finds_bare(asked);
        }
        free(written);
    }
    return found;
}

/* The reader that gets the text of messages. */
typedef struct next_reader {
    call_reader *reader;
    const call_sink *sink;
} next_reader;

static void read_next(void *user, const char *bytes, size_t size) {
    const next_reader *to = user;
    call_reader_take(to->reader, to->sink, bytes, size);
}

/* A message to a function, whatever order its header has. */
static bool find_channels(const probe *p, call_form *out) {
    if (!channels_are_spoken(p->tokenizer))
        return false;
    seen all = {.n = 0};
    call_reader reader = {.form = call_form_of(CALL_CHANNELS)};
    channels_reader channels = {.state = 0};
    const call_sink calls = {&all, skip_text, note_name, note_arguments, note_end};
    next_reader to = {&reader, &calls};
    const thinking_sink sink = {&to, skip_text, read_next};
    char *written = render_calls(p, 1, plain_arguments, false);
    const char *asked = written != NULL ? strstr(written, CALL_PROBE_ASKED) : NULL;
    if (asked != NULL) {
        channels_take(&channels, &sink, asked, strlen(asked));
        channels_finish(&channels, &sink);
    }
    const bool found = all.n == 1 && strcmp(all.names[0], CALL_PROBE_FIRST) == 0 &&
                       same_json(&all.arguments[0], plain_arguments);
    *out = *call_form_of(CALL_CHANNELS);
    call_reader_free(&reader);
    channels_free(&channels);
    text_free(&all.arguments[0]);
    free(written);
    return found;
}

/* A list of calls as in Python, however the template writes their values. */
static bool find_python(const probe *p, call_form *out) {
    char *written = render_calls(p, 1, plain_arguments, false);
    const bool found = written != NULL && strstr(written, "[" CALL_PROBE_FIRST "(") != NULL;
    *out = *call_form_of(CALL_PYTHON);
    free(written);
    return found;
}

/* ---- forms that only the template has -------------------------------------------------------- */

/* Texts without quotes, for templates that do not escape them. */
static const char soft_arguments[] =
    "{\"a_text\":\"say \\u00fc\",\"b_text\":\"7\\u20ac\",\"c_number\":-12,\"d_number\":2.5,"
    "\"e_flag\":true,\"f_list\":[1,\"two\",false],\"g_object\":{\"k\":\"v w\",\"n\":3}}";

/* True if the form finds what the template writes: one call and two. */
static bool finds_all(const probe *p, call_form *f, const char *arguments) {
    bool proved = true;
    for (size_t n = 1; n <= (f->single ? 1U : 2U) && proved; n++) {
        char *written = render_calls(p, n, arguments, false);
        const char *asked = written != NULL ? strstr(written, CALL_PROBE_ASKED) : NULL;
        const char *start =
            asked != NULL && f->at_start
                ? strstr(asked, f->section_open[0] != '\0' ? f->section_open : f->open)
                : asked;
        proved = start != NULL && finds(f, start, n, arguments);
        f->python = proved && strstr(start, "True") != NULL;
        free(written);
    }
    return proved;
}

static bool is_proved(const probe *p, call_form *f) {
    return finds_all(p, f, hard_arguments) ||
           (f->writing == CALL_LITERALS && finds_all(p, f, soft_arguments));
}

static bool derive(const probe *p, call_form *out) {
    static const char arguments[] =
        "{\"a_text\":\"" CALL_PROBE_TEXT_1 "\",\"b_text\":\"" CALL_PROBE_TEXT_2
        "\",\"c_number\":" CALL_PROBE_NUMBER_1 ",\"d_number\":" CALL_PROBE_NUMBER_2 "}";
    const tern_chat_message plain[] = {{.role = "user", .content = CALL_PROBE_ASKED},
                                       {.role = "assistant", .content = CALL_PROBE_ANSWER}};
    call_samples samples = {.tokenizer = p->tokenizer, .arguments = arguments};
    samples.plain = render(p, plain, 2, false);
    samples.one = render_calls(p, 1, arguments, false);
    samples.two = render_calls(p, 2, arguments, false);
    for (size_t i = 0; i < 2; i++)
        samples.ids[i] = p->ids[i];
    const bool found = samples.plain != NULL && samples.one != NULL && call_derive(&samples, out) &&
                       is_proved(p, out);
    free(samples.plain);
    free(samples.one);
    free(samples.two);
    return found;
}

/* True if the template tells the model of tools. */
static bool tells_tools(const probe *p) {
    const tern_chat_message asked = {.role = "user", .content = CALL_PROBE_ASKED};
    char *written = render(p, &asked, 1, true);
    const bool told = written != NULL && strstr(written, TOLD) != NULL;
    free(written);
    return told;
}

bool call_probe(const tern_tokenizer *t, call_form *out) {
    static const struct {
        const char *ids[2];
        call_ids kind;
    } tries[] = {{{"call_4f21cb67d9a03e581122aabb", "call_4f21cb67d9a03e581122aabc"}, CALL_IDS_ANY},
                 {{"call00001", "call00002"}, CALL_IDS_NINE},
                 {{"functions." CALL_PROBE_FIRST ":0", "functions." CALL_PROBE_SECOND ":1"},
                  CALL_IDS_FUNCTION}};
    bool untold = true;
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        const probe p = {t, {tries[i].ids[0], tries[i].ids[1]}};
        if (i == 0)
            untold = !tells_tools(&p);
        if (find_channels(&p, out) || find_named(&p, out) || derive(&p, out)) {
            out->ids = out->ids == CALL_IDS_ANY ? tries[i].kind : out->ids;
            out->untold = untold;
            return true;
        }
    }
    const probe p = {t, {tries[0].ids[0], tries[0].ids[1]}};
    const bool found = find_python(&p, out);
    out->untold = untold;
    return found;
}

void call_find(const tern_tokenizer *t, call_form *out) {
    if (call_probe(t, out))
        return;
    *out = *call_form_of(CALL_TAGGED);
    out->untold = true;
    out->unwritten = true;
}
