/* SPDX-License-Identifier: Apache-2.0 */
/* Conversations as ids and as text. */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/text/chat/formats.h"
#include "runtime/text/template/template.h"

const char *tern_chat_format(const tern_tokenizer *t) {
    return tern_chat_name(tern_chat_of(t));
}

tern_status tern_tokenizer_set_chat_format(tern_tokenizer *t, const char *name, tern_error *err) {
    if (t == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_tokenizer_set_chat_format: NULL argument");
    tern_chat_format_id id = TERN_CHAT_BITNET;
    while (name != NULL && id < TERN_CHAT_COUNT && strcmp(tern_chat_name(id), name) != 0)
        id++;
    if (name != NULL && id == TERN_CHAT_COUNT)
        return tern_fail(err, TERN_ERR_NAME, "%s: chat format '%.32s' is none of: %s", t->file,
                         name, tern_chat_names());
    t->chat_format = name != NULL ? id : TERN_CHAT_UNKNOWN;
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

/* ---- the file's own template ----------------------------------------------------------------- */

/* The tokens that templates know by name; how many. */
static size_t named_tokens(const tern_tokenizer *t, tern_template_token out[3]) {
    const struct {
        const char *name;
        int32_t id;
    } known[] = {{"bos_token", t->bos}, {"eos_token", t->eos}, {"unk_token", t->unknown}};
    size_t n = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].id >= 0 && (size_t)known[i].id < t->n_tokens)
            out[n++] = (tern_template_token){known[i].name, t->tokens[known[i].id]};
    return n;
}

/* Whether a text begins with the token that begins texts, as the template's own. */
static bool has_bos(const tern_tokenizer *t, const tern_marked_text *text) {
    const tern_span bos = t->tokens[t->bos];
    return text->size >= bos.size && bos.size > 0 && memcmp(text->bytes, bos.data, bos.size) == 0 &&
           tern_all_zero(text->marks, bos.size);
}

static tern_status run_template(const tern_tokenizer *t, const tern_conversation *c,
                                tern_encoder *e, tern_marked_text *text, tern_error *err) {
    tern_template_token tokens[3];
    const tern_template_input input = {.conversation = c,
                                       .tokens = tokens,
                                       .n_tokens = named_tokens(t, tokens),
                                       .now = time(NULL)};
    tern_marked_text own = {0};
    tern_status status = tern_template_run(t->chat_template, &input, &own, err);
    if (status == TERN_OK) {
        tern_chat_builder b = {.t = t, .e = e, .text = text};
        if (t->add_bos && t->bos >= 0 && !has_bos(t, &own))
            tern_chat_put_id(&b, t->bos);
        tern_chat_put_marked(&b, &own);
        status = b.status == TERN_OK ? TERN_OK : failure(t, b.status, err);
    }
    tern_marked_free(&own);
    return status;
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
    if (format == TERN_CHAT_TEMPLATE)
        return run_template(t, c, e, text, err);
    const tern_status status = tern_chat_check(format, c, err);
    if (status != TERN_OK)
        return status;
    tern_chat_builder b = {.t = t, .e = e, .text = text};
    tern_chat_write(format, &b, c);
    return b.status == TERN_OK ? TERN_OK : failure(t, b.status, err);
}

/* The same after a check; the caller finishes e, unless it is NULL, and frees *text. */
static tern_status write_checked(const tern_tokenizer *t, const tern_conversation *c,
                                 tern_encoder *e, tern_marked_text *text, tern_error *err) {
    const tern_status status = check_messages(t, c, err);
    return status == TERN_OK ? write(t, c, e, text, err) : status;
}

/* Text and ids from one writing; *n ids are in e->ids. */
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

/* The first message with words of which a text has nothing; c->n: there is none. */
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
