/* SPDX-License-Identifier: Apache-2.0 */
/* Writes conversations as ids and as text. */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/in_file.h"
#include "runtime/text/chat/formats.h"
#include "runtime/text/template/template.h"
#include "runtime/text/tokenizer/internal.h"

const char *tern_chat_format(const tern_tokenizer *t) {
    return tern_chat_name(tern_chat_of(t));
}

static bool has_words(tern_span text, const char *words) {
    return memmem(text.data, text.size, words, strlen(words)) != NULL;
}

bool tern_chat_mentions(const tern_tokenizer *t, const char *words) {
    if (tern_chat_of(t) != TERN_CHAT_TEMPLATE)
        return false;
    if (t->set_template != NULL)
        return strstr(t->set_template, words) != NULL;
    return has_words(t->chat_template, words) || has_words(t->tool_template, words);
}

/* Reads a file with a template that can be run. */
static tern_status read_template(const char *path, char **text, tern_error *err) {
    size_t size;
    const size_t limit = 1 << 24;
    tern_status status = tern_in_file_read(path, limit, text, &size, err);
    tern_error problem = {0};
    if (status != TERN_OK)
        return status;
    status = tern_template_check((tern_span){*text, size}, &problem);
    if (status == TERN_OK && strlen(*text) == size)
        return TERN_OK;
    free(*text);
    return status != TERN_OK ? tern_fail(err, status, "%s: %s", path, problem.message)
                             : tern_fail(err, TERN_ERR_TEMPLATE, "%s: has a byte 0", path);
}

static void set_chat(tern_tokenizer *t, tern_chat_format_id id, char *template) {
    free(t->set_template);
    t->chat_format = id;
    t->set_template = template;
}

tern_status tern_tokenizer_set_chat_format(tern_tokenizer *t, const char *name, tern_error *err) {
    if (t == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_tokenizer_set_chat_format: NULL argument");
    if (name != NULL && strpbrk(name, "./") != NULL) {
        char *text;
        const tern_status status = read_template(name, &text, err);
        if (status == TERN_OK)
            set_chat(t, TERN_CHAT_UNKNOWN, text);
        return status;
    }
    tern_chat_format_id id = TERN_CHAT_BITNET;
    while (name != NULL && id < TERN_CHAT_COUNT && strcmp(tern_chat_name(id), name) != 0)
        id++;
    if (name != NULL && id == TERN_CHAT_COUNT)
        return tern_fail(err, TERN_ERR_NAME, "%s: chat format '%.32s' is not one of: %s", t->file,
                         name, tern_chat_names());
    set_chat(t, name != NULL ? id : TERN_CHAT_UNKNOWN, NULL);
    return TERN_OK;
}

static tern_status check_messages(const tern_tokenizer *t, const tern_conversation *c,
                                  tern_error *err) {
    if (c->messages == NULL && c->n > 0)
        return tern_fail(err, TERN_ERR_NULL, "%s: no messages", t->file);
    if (c->n == 0)
        return tern_fail(err, TERN_ERR_EMPTY, "%s: a chat needs a message", t->file);
    for (size_t i = 0; i < c->n; i++) {
        const tern_chat_message *m = &c->messages[i];
        if (m->role == NULL || (m->content == NULL && m->tool_calls == NULL))
            return tern_fail(err, TERN_ERR_NULL, "%s: message %zu has no role or no content",
                             t->file, i);
    }
    return TERN_OK;
}

static tern_status failure(const tern_tokenizer *t, tern_status status, tern_error *err) {
    return tern_fail(err, status, "%s: %s while writing a conversation", t->file,
                     tern_status_str(status));
}

/* ---- templates ------------------------------------------------------------------------------- */

enum { MOST_WORDS = 5 };

/* The words that a template knows by name. */
typedef struct words {
    tern_template_token list[MOST_WORDS];
    size_t n;
} words;

static void add_word(words *w, const char *name, tern_span text) {
    w->list[w->n++] = (tern_template_token){name, text};
}

static tern_span token_text(const tern_tokenizer *t, int32_t id) {
    const bool there = id >= 0 && (size_t)id < t->n_tokens;
    return there ? t->tokens[id] : (tern_span){"", 0};
}

static words named_tokens(const tern_tokenizer *t) {
    const struct {
        const char *name;
        int32_t id;
    } known[] = {{"bos_token", t->bos}, {"eos_token", t->eos}, {"unk_token", t->unknown}};
    words w = {.n = 0};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].id >= 0 && (size_t)known[i].id < t->n_tokens)
            add_word(&w, known[i].name, token_text(t, known[i].id));
    return w;
}

/* True if a text begins with the token that begins texts, written by the template itself. */
static bool has_bos(const tern_tokenizer *t, const tern_marked_text *text) {
    const tern_span bos = t->tokens[t->bos];
    return text->size >= bos.size && bos.size > 0 && memcmp(text->bytes, bos.data, bos.size) == 0 &&
           tern_all_zero(text->marks, bos.size);
}

/* Adds the text that a template wrote to *text, and its ids to e unless that is NULL. BOS comes
 * first, once. */
static tern_status put_written(const tern_tokenizer *t, const tern_marked_text *written,
                               tern_encoder *e, tern_marked_text *text) {
    const tern_span bytes = {written->bytes, written->size};
    tern_status status = TERN_OK;
    if (t->add_bos && t->bos >= 0 && !has_bos(t, written)) {
        status =
            tern_marked_add(text, t->tokens[t->bos], TERN_MARK_TEMPLATE, TERN_TOKENIZER_MAX_TEXT);
        if (e != NULL && status == TERN_OK)
            tern_encoder_emit(e, t->bos);
    }
    if (status != TERN_OK || bytes.size == 0)
        return status;
    status = tern_marked_add_marks(text, bytes, written->marks, TERN_TOKENIZER_MAX_TEXT);
    return status == TERN_OK && e != NULL ? tern_encode_marked(e, bytes, written->marks) : status;
}

static tern_status run(tern_span source, const words *w, const tern_conversation *c,
                       tern_marked_text *written, tern_error *err) {
    tern_conversation talk = *c;
    talk.no_answer = c->no_answer || c->continues;
    const tern_template_input input = {
        .conversation = &talk, .tokens = w->list, .n_tokens = w->n, .now = time(NULL)};
    return tern_template_run(source, &input, written, err);
}

/* Leaves out what follows the text of message i, which is the last one. */
static tern_status end_in_message(const tern_tokenizer *t, size_t i, tern_marked_text *written,
                                  tern_error *err) {
    const uint8_t mark = tern_mark_of_message(i);
    while (written->size > 0 && written->marks[written->size - 1] != mark)
        written->size--;
    return written->size > 0
               ? TERN_OK
               : tern_fail(err, TERN_ERR_CHAT,
                           "%s: the template leaves the last message out, so that no answer can "
                           "go on from it",
                           t->file);
}

static tern_status run_template(const tern_tokenizer *t, tern_span source, const words *w,
                                const tern_conversation *c, tern_encoder *e, tern_marked_text *text,
                                tern_error *err) {
    tern_marked_text written = {0};
    tern_status status = run(source, w, c, &written, err);
    if (status == TERN_OK && c->continues)
        status = end_in_message(t, c->n - 1, &written, err);
    if (status == TERN_OK) {
        status = put_written(t, &written, e, text);
        if (status != TERN_OK)
            (void)failure(t, status, err);
    }
    tern_marked_free(&written);
    return status;
}

/*
 * Finds the system message that the file's own template gives to a chat without one, in ChatML, by
 * running it for an empty message. The text lies in *written; it is empty if there is none.
 */
static tern_span default_system(const tern_tokenizer *t, tern_marked_text *written) {
    static const char head[] = "<|im_start|>system\n", tail[] = "<|im_end|>";
    const tern_chat_message empty = {.role = "user", .content = ""};
    const tern_conversation c = {.messages = &empty, .n = 1};
    const tern_span nothing = {"", 0};
    const size_t skip = sizeof head - 1;
    words w = {.n = 0};
    add_word(&w, "bos_token", nothing);
    add_word(&w, "eos_token", nothing);
    if (t->chat_template.size == 0 || run(t->chat_template, &w, &c, written, NULL) != TERN_OK ||
        written->size < skip || memcmp(written->bytes, head, skip) != 0)
        return nothing;
    const char *start = written->bytes + skip;
    const char *end = memmem(start, written->size - skip, tail, sizeof tail - 1);
    return end != NULL ? (tern_span){start, (size_t)(end - start)} : nothing;
}

static tern_status run_built_in(const tern_tokenizer *t, tern_chat_format_id format,
                                const tern_conversation *c, tern_encoder *e, tern_marked_text *text,
                                tern_error *err) {
    const tern_conversation talk = {
        .messages = c->messages, .n = c->n, .no_answer = c->no_answer, .continues = c->continues};
    const bool ends = tern_chat_template_has(t, "eos_token");
    tern_status status = tern_chat_check(format, c, err);
    if (status != TERN_OK)
        return status;
    tern_marked_text own = {0};
    words w = named_tokens(t);
    add_word(&w, "turn_end", ends ? token_text(t, t->eos) : (tern_span){"\n", 1});
    if (format == TERN_CHAT_CHATML)
        add_word(&w, "default_system", default_system(t, &own));
    status = run_template(t, tern_chat_template(format), &w, &talk, e, text, err);
    tern_marked_free(&own);
    return status;
}

/* The template for a conversation: a file's that was set, or the model's own. */
static tern_span own_template(const tern_tokenizer *t, const tern_conversation *c) {
    if (t->set_template != NULL)
        return (tern_span){t->set_template, strlen(t->set_template)};
    return c->tools != NULL && t->tool_template.size > 0 ? t->tool_template : t->chat_template;
}

/* Writes a conversation into *text, and its ids into e unless that is NULL. */
static tern_status write(const tern_tokenizer *t, const tern_conversation *c, tern_encoder *e,
                         tern_marked_text *text, tern_error *err) {
    const tern_chat_format_id format = tern_chat_of(t);
    if (format == TERN_CHAT_UNKNOWN)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA,
                         "%s: the model has no chat format that is known here (no "
                         "tokenizer.chat_template)",
                         t->file);
    if (format != TERN_CHAT_TEMPLATE)
        return run_built_in(t, format, c, e, text, err);
    const words w = named_tokens(t);
    return run_template(t, own_template(t, c), &w, c, e, text, err);
}

/* Does the same after a check. The caller finishes e, unless it is NULL, and frees *text. */
static tern_status write_checked(const tern_tokenizer *t, const tern_conversation *c,
                                 tern_encoder *e, tern_marked_text *text, tern_error *err) {
    const tern_status status = check_messages(t, c, err);
    return status == TERN_OK ? write(t, c, e, text, err) : status;
}

/* Writes text and ids at once; *n ids are in e->ids. */
static tern_status write_both(const tern_conversation *c, tern_encoder *e, tern_marked_text *text,
                              size_t *n, tern_error *err) {
    const tern_status status = write_checked(e->t, c, e, text, err);
    const tern_status ended = tern_encoder_finish(e, status, n, status == TERN_OK ? err : NULL);
    return status == TERN_OK ? ended : status;
}

tern_status tern_conversation_tokenize(const tern_tokenizer *t, const tern_conversation *c,
                                       int32_t *ids, size_t capacity, size_t *n, tern_error *err) {
    if (t == NULL || c == NULL || (ids == NULL && capacity > 0) || n == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_conversation_tokenize: NULL argument");
    tern_encoder e = {.t = t, .ids = ids, .capacity = capacity};
    tern_marked_text text = {0};
    const tern_status status = write_both(c, &e, &text, n, err);
    tern_marked_free(&text);
    return status;
}

tern_status tern_conversation_text(const tern_tokenizer *t, const tern_conversation *c, char *text,
                                   uint8_t *marks, size_t capacity, size_t *size, tern_error *err) {
    if (t == NULL || c == NULL || (text == NULL && capacity > 0) || size == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_conversation_text: NULL argument");
    tern_marked_text whole = {0};
    tern_status status = write_checked(t, c, NULL, &whole, err);
    if (status == TERN_OK) {
        const size_t n = whole.size < capacity ? whole.size : capacity;
        *size = whole.size;
        if (n > 0)
            memcpy(text, whole.bytes, n);
        if (n > 0 && marks != NULL)
            memcpy(marks, whole.marks, n);
        if (capacity > 0 && whole.size > capacity)
            status = tern_fail(err, TERN_ERR_BUFFER, "%s: the text has %zu bytes, not %zu", t->file,
                               whole.size, capacity);
    }
    tern_marked_free(&whole);
    return status;
}

static bool is_blank(const char *text) {
    return text[strspn(text, " \t\n\v\f\r")] == '\0';
}

/* Finds the first message with words of which the text has nothing; c->n: there is none. */
static size_t find_unseen(const tern_conversation *c, const tern_marked_text *text) {
    for (size_t i = 0; i < c->n && i < TERN_MARK_MESSAGES; i++) {
        const char *content = c->messages[i].content;
        if (content != NULL && !is_blank(content) &&
            (text->size == 0 || memchr(text->marks, tern_mark_of_message(i), text->size) == NULL))
            return i;
    }
    return c->n;
}

tern_status tern_conversation_drops(const tern_tokenizer *t, const tern_conversation *c,
                                    size_t *message, tern_error *err) {
    tern_marked_text text = {0};
    if (t == NULL || c == NULL || message == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_conversation_drops: NULL argument");
    const tern_status status = write_checked(t, c, NULL, &text, err);
    *message = status == TERN_OK ? find_unseen(c, &text) : c->n;
    tern_marked_free(&text);
    return status;
}

tern_status tern_conversation_render(const tern_tokenizer *t, const tern_conversation *c,
                                     tern_rendering *out, tern_error *err) {
    return tern_conversation_render_within(t, c, NULL, out, err);
}

tern_status tern_conversation_render_within(const tern_tokenizer *t, const tern_conversation *c,
                                            const tern_tokenize_limits *limits, tern_rendering *out,
                                            tern_error *err) {
    if (t == NULL || c == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_conversation_render: NULL argument");
    tern_encoder e = {.t = t, .grows = true, .limits = limits};
    tern_marked_text text = {0};
    *out = (tern_rendering){0};
    const tern_status status = write_both(c, &e, &text, &out->n, err);
    const size_t unseen = status == TERN_OK ? find_unseen(c, &text) : 0;
    *out = (tern_rendering){.text = text.bytes,
                            .marks = text.marks,
                            .size = text.size,
                            .ids = e.ids,
                            .n = out->n,
                            .unseen = unseen};
    if (status != TERN_OK)
        tern_rendering_free(out);
    return status;
}

void tern_rendering_free(tern_rendering *r) {
    if (r == NULL)
        return;
    free(r->text);
    free(r->marks);
    free(r->ids);
    *r = (tern_rendering){0};
}

tern_status tern_chat_tokenize(const tern_tokenizer *t, const tern_chat_message *messages,
                               size_t n_messages, int32_t *ids, size_t capacity, size_t *n,
                               tern_error *err) {
    const tern_conversation c = {.messages = messages, .n = n_messages};
    return tern_conversation_tokenize(t, &c, ids, capacity, n, err);
}
