/* SPDX-License-Identifier: Apache-2.0 */
/* tern logits: prints, hashes or saves the logits of a prompt. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "base/utf8.h"
#include "tools/cli/output.h"
#include "tools/cli/targets.h"
#include "tools/commands/commands.h"
#include "tools/load/loader.h"
#include "tools/prompt/prompt.h"

enum { TOP = 10, CHUNK = 4096 };

/* The destination of the bytes: a hash, a file, both, or neither. */
typedef struct sink {
    bool hashed;
    tern_sha256 hash;
    tern_out_file *file;
} sink;

static int sink_open(sink *s, bool hashed, const char *path, tern_out_mode mode) {
    s->hashed = hashed;
    tern_sha256_start(&s->hash);
    tern_error err = {0};
    if (path != NULL && tern_out_file_create(path, mode, &s->file, &err) != TERN_OK)
        return complain_error(&err);
    return EXIT_DONE;
}

/* Appends n floats as little-endian bytes. */
static bool sink_add(sink *s, const float *x, size_t n) {
    uint8_t bytes[4 * CHUNK];
    for (size_t at = 0; at < n;) {
        const size_t count = n - at < CHUNK ? n - at : CHUNK;
        for (size_t i = 0; i < count; i++) {
            uint32_t bits;
            memcpy(&bits, &x[at + i], sizeof bits);
            for (unsigned b = 0; b < 4; b++)
                bytes[4 * i + b] = (uint8_t)(bits >> (8 * b));
        }
        if (s->hashed)
            tern_sha256_add(&s->hash, bytes, 4 * count);
        tern_error err = {0};
        if (s->file != NULL && tern_out_file_write(s->file, bytes, 4 * count, &err) != TERN_OK) {
            (void)complain_error(&err);
            return false;
        }
        at += count;
    }
    return true;
}

/* Completes the file, which gives it its name. */
static int sink_commit(sink *s) {
    tern_error err = {0};
    if (s->file != NULL && tern_out_file_commit(&s->file, &err) != TERN_OK)
        return complain_error(&err);
    return EXIT_DONE;
}

/* ---- evaluation ------------------------------------------------------------------------------ */

/*
 * Evaluates the prompt in pieces. With --all every piece's logits go to the sink, otherwise those
 * of the last position, which are also in `last` [n_vocab] at the end.
 */
static int evaluate(const options *o, const loaded *l, const prompt *p, float *buffer, sink *s,
                    float *last) {
    const size_t n_vocab = l->info.n_vocab;
    const bool all = options_switch(o, OPT_ALL);
    const size_t split = options_integer(o, OPT_SPLIT);
    const size_t piece = split > 0 ? split : p->n;
    for (size_t at = 0; at < p->n; at += piece) {
        const size_t n = p->n - at < piece ? p->n - at : piece;
        const bool end = at + n == p->n;
        const tern_logits_mode mode = all   ? TERN_LOGITS_ALL
                                      : end ? TERN_LOGITS_LAST
                                            : TERN_LOGITS_NONE;
        tern_error err = {0};
        if (tern_session_eval(l->session, p->ids + at, n, mode, buffer, &err) != TERN_OK)
            return complain_error(&err);
        const size_t rows = all ? n : end;
        if (!sink_add(s, buffer, rows * n_vocab))
            return EXIT_FAILED;
        if (end)
            memcpy(last, buffer + (rows - 1) * n_vocab, n_vocab * sizeof *last);
    }
    return EXIT_DONE;
}

/* For --recompute: evaluates each position again from the first token on, so that nothing comes
 * from the cache. Logits go to the same places as in evaluate. */
static int recompute(const options *o, const loaded *l, const prompt *p, float *buffer, sink *s,
                     float *last) {
    const size_t n_vocab = l->info.n_vocab;
    for (size_t n = options_switch(o, OPT_ALL) ? 1 : p->n; n <= p->n; n++) {
        tern_error err = {0};
        if (tern_session_eval_at(l->session, 0, p->ids, n, TERN_LOGITS_LAST, buffer, &err) !=
            TERN_OK)
            return complain_error(&err);
        if (!sink_add(s, buffer, n_vocab))
            return EXIT_FAILED;
    }
    memcpy(last, buffer, n_vocab * sizeof *last);
    return EXIT_DONE;
}

/* A buffer for the logits of the largest piece, 64-byte aligned; NULL after a complaint. */
static float *allocate_logits(const options *o, const loaded *l, size_t n_prompt) {
    const size_t split = options_integer(o, OPT_SPLIT);
    const size_t piece = split > 0 && split < n_prompt ? split : n_prompt;
    const size_t rows = options_switch(o, OPT_ALL) ? piece : 1;
    size_t floats;
    size_t bytes;
    float *buffer = NULL;
    if (!__builtin_mul_overflow(rows, (size_t)l->info.n_vocab, &floats) &&
        !__builtin_add_overflow(floats, TERN_LANES, &floats) &&
        !__builtin_mul_overflow(floats / TERN_LANES * TERN_LANES, sizeof *buffer, &bytes))
        buffer = aligned_alloc(TERN_ALIGN, bytes);
    if (buffer == NULL)
        complain("no memory for the logits of %zu positions; use --split", rows);
    return buffer;
}

/* ---- keys and values --------------------------------------------------------------------------
 */

/* Writes the whole cache as floats: [layer][keys, values][kv head][position][head dim]. */
static int add_cache(const loaded *l, sink *s, float *row) {
    const tern_model_info *m = &l->info;
    const uint32_t positions = tern_session_position(l->session);
    for (uint32_t run = 0; run < 2 * m->n_layer * m->n_head_kv; run++) {
        const uint32_t layer = run / m->n_head_kv / 2;
        const bool value = run / m->n_head_kv % 2;
        for (uint32_t i = 0; i < positions; i++)
            if (!tern_session_kv_floats(l->session, value, layer, run % m->n_head_kv, i, row) ||
                !sink_add(s, row, m->head_dim))
                return EXIT_FAILED;
    }
    return sink_commit(s);
}

/* Writes the file of --dump-kv. */
static int dump_cache(const options *o, const loaded *l) {
    const char *path = options_text(o, OPT_DUMP_KV);
    if (path == NULL)
        return EXIT_DONE;
    float *row = malloc(l->info.head_dim * sizeof *row);
    if (row == NULL) {
        complain("no memory for %u numbers", l->info.head_dim);
        return EXIT_FAILED;
    }
    sink s = {0};
    int status = sink_open(&s, false, path, targets_mode(o));
    if (status == EXIT_DONE)
        status = add_cache(l, &s, row);
    tern_out_file_discard(&s.file);
    free(row);
    return status;
}

/* ---- the ten best tokens --------------------------------------------------------------------- */

/* Prints a token on one line: control characters and invalid UTF-8 as \xNN. */
static void print_piece(const tern_tokenizer *t, int32_t id) {
    size_t size = 0;
    const char *bytes = t != NULL ? tern_token_bytes(t, id, true, &size) : "";
    out_print("\"");
    while (size > 0) {
        const tern_utf8 character = tern_utf8_next(bytes, size);
        if (character.kind == TERN_UTF8_VALID && character.code >= ' ' && character.code != 0x7f)
            out_write(bytes, character.size);
        else
            for (size_t i = 0; i < character.size; i++)
                out_print("\\x%02x", (unsigned char)bytes[i]);
        bytes += character.size;
        size -= character.size;
    }
    out_print("\"\n");
}

/* Prints the best tokens in order; this overwrites logits. */
static void print_top(const loaded *l, float *logits) {
    out_print("%-5s %8s %12s  %s\n", "RANK", "TOKEN", "LOGIT", "TEXT");
    for (int rank = 1; rank <= TOP && (uint32_t)rank <= l->info.n_vocab; rank++) {
        const int32_t id = tern_argmax(logits, l->info.n_vocab);
        out_print("%-5d %8d %12.6f  ", rank, id, (double)logits[id]);
        print_piece(l->tokenizer, id);
        logits[id] = -__builtin_inff();
    }
}

/* ---- the command ----------------------------------------------------------------------------- */

static int logits_of(const options *o, const loaded *l, const prompt *p, float *buffer,
                     float *last) {
    sink s = {0};
    int status =
        sink_open(&s, options_switch(o, OPT_SHA256), options_text(o, OPT_OUTPUT), targets_mode(o));
    if (status == EXIT_DONE) {
        status = options_switch(o, OPT_RECOMPUTE) ? recompute(o, l, p, buffer, &s, last)
                                                  : evaluate(o, l, p, buffer, &s, last);
    }
    if (status == EXIT_DONE)
        status = loader_check_file(l);
    if (status == EXIT_DONE)
        status = dump_cache(o, l);
    if (status == EXIT_DONE)
        status = sink_commit(&s);
    if (status == EXIT_DONE && options_switch(o, OPT_SHA256)) {
        char hex[65];
        tern_sha256_finish(&s.hash, hex);
        out_print("%s\n", hex);
    } else if (status == EXIT_DONE && options_text(o, OPT_OUTPUT) == NULL) {
        print_top(l, last);
    }
    tern_out_file_discard(&s.file);
    return status;
}

int cmd_logits(const options *o) {
    loaded l = {0};
    prompt p = {0};
    float *buffer = NULL;
    float *last = NULL;
    l.keep_all = options_text(o, OPT_DUMP_KV) != NULL;
    int status = loader_open(o, true, &l);
    if (status == EXIT_DONE)
        status = prompt_read(o, &l, &p);
    if (status == EXIT_DONE && p.n == 0) {
        complain("the prompt has no tokens");
        status = EXIT_FAILED;
    }
    if (status == EXIT_DONE) {
        buffer = allocate_logits(o, &l, p.n);
        last = malloc(l.info.n_vocab * sizeof *last);
        if (buffer != NULL && last == NULL)
            complain("no memory for the logits of a position");
        status = buffer == NULL || last == NULL ? EXIT_FAILED : logits_of(o, &l, &p, buffer, last);
    }
    free(buffer);
    free(last);
    prompt_free(&p);
    loader_close(&l);
    return status;
}
