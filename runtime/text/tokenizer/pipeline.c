/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/tokenizer/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/text/tokenizer/characters.h"
#include "runtime/text/tokenizer/charsmap.h"
#include "runtime/text/tokenizer/normalize.h"
#include "runtime/text/tokenizer/regex.h"
#include "runtime/text/tokenizer/white_space.h"

typedef struct tern_stage {
    tern_step step;    /* pattern is not kept */
    tern_regex *regex; /* REPLACE, SPLIT */
    char *content;     /* REPLACE, PREPEND, CHARSMAP: the bytes of step.content */
    tern_charsmap charsmap;
} tern_stage;

struct tern_pipeline {
    size_t n;
    tern_stage stages[TERN_TOKENIZER_MAX_STEPS];
};

typedef struct tern_stage_buffer {
    char *data;
    size_t capacity;
} tern_stage_buffer;

/* A match is read before a later stage searches, and walks end in the order of stages, the last one
 * first: one regex scratch serves all. */
struct tern_pipeline_scratch {
    tern_regex_scratch *regex;
    tern_stage_buffer buffers[TERN_TOKENIZER_MAX_STEPS]; /* output of each stage */
    size_t limit; /* most bytes of a buffer: what a text can grow to */
};

/* ---- construction ---------------------------------------------------------------------------- */

static tern_status add_stage(tern_pipeline *p, const tern_step *step, char *why) {
    tern_stage *stage = &p->stages[p->n];
    *stage = (tern_stage){.step = *step};
    p->n++;
    if (step->content.size > 0) {
        stage->content = malloc(step->content.size);
        if (stage->content == NULL)
            return TERN_ERR_NOMEM;
        memcpy(stage->content, step->content.data, step->content.size);
        stage->step.content.data = stage->content;
    }
    if (step->kind == TERN_STEP_CHARSMAP)
        return tern_charsmap_open(stage->step.content, &stage->charsmap, why);
    if (step->kind == TERN_STEP_REPLACE || step->kind == TERN_STEP_SPLIT)
        return tern_regex_new(step->pattern, step->literal, &stage->regex, why);
    return TERN_OK;
}

tern_status tern_pipeline_new(const tern_step *steps, size_t n, tern_pipeline **out, char *why) {
    tern_pipeline *p = calloc(1, sizeof *p);
    tern_status status = p != NULL ? TERN_OK : TERN_ERR_NOMEM;
    for (size_t i = 0; i < n && status == TERN_OK; i++)
        status = add_stage(p, &steps[i], why);
    if (status != TERN_OK) {
        tern_pipeline_free(&p);
        return status;
    }
    *out = p;
    return TERN_OK;
}

void tern_pipeline_free(tern_pipeline **p) {
    if (*p == NULL)
        return;
    for (size_t i = 0; i < (*p)->n; i++) {
        tern_regex_free(&(*p)->stages[i].regex);
        free((*p)->stages[i].content);
    }
    free(*p);
    *p = NULL;
}

/* Factors of the strongest shrinking. Normal forms: mathematical letters (four bytes) become ASCII;
 * composition makes two bytes of seven for U+0390. Lower case: U+212A becomes k. */
enum { SHORTEST_NORMAL = 4, SHORTEST_LOWERCASE = 3 };

static size_t step_shrinks(const tern_step *s) {
    switch (s->kind) {
    case TERN_STEP_NORMALIZE:
        return SHORTEST_NORMAL;
    case TERN_STEP_CHARACTERS:
        return s->map == TERN_MAP_LOWERCASE ? SHORTEST_LOWERCASE : s->map == TERN_MAP_SPACE_HAN;
    case TERN_STEP_REPLACE:
        return s->literal && s->content.size > 0
                   ? (s->pattern.size + s->content.size - 1) / s->content.size
                   : 0;
    case TERN_STEP_SPACES:
        return !s->fewer;
    case TERN_STEP_SPLIT:
        return s->behavior != TERN_SPLIT_REMOVED;
    case TERN_STEP_PREPEND:
    case TERN_STEP_ADDED:
    case TERN_STEP_BYTES:
        return 1;
    case TERN_STEP_CHARSMAP:
    case TERN_STEP_STRIP:
    case TERN_STEP_WORDS:
        break;
    }
    return 0;
}

size_t tern_pipeline_shrinks(const tern_pipeline *p) {
    size_t times = 1;
    for (size_t i = 0; i < p->n && times < SIZE_MAX >> 16; i++)
        times *= step_shrinks(&p->stages[i].step);
    return times < SIZE_MAX >> 16 ? times : 0;
}

tern_pipeline_scratch *tern_pipeline_scratch_new(void) {
    tern_pipeline_scratch *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->regex = tern_regex_scratch_new();
    if (s->regex == NULL) {
        tern_pipeline_scratch_free(s);
        return NULL;
    }
    return s;
}

void tern_pipeline_scratch_free(tern_pipeline_scratch *scratch) {
    if (scratch == NULL)
        return;
    for (size_t i = 0; i < TERN_TOKENIZER_MAX_STEPS; i++)
        free(scratch->buffers[i].data);
    tern_regex_scratch_free(scratch->regex);
    free(scratch);
}

/* ---- running --------------------------------------------------------------------------------- */

typedef struct tern_run {
    const tern_pipeline *p;
    tern_pipeline_scratch *scratch;
    const tern_piece_sink *sink;
} tern_run;

/* Runs the steps from `stage` on over a piece. first: nothing lies before it in the text. */
static tern_status run_from(const tern_run *r, size_t stage, tern_span piece, bool first);

/* The text that a stage is writing, in its own buffer. */
typedef struct tern_writer {
    tern_stage_buffer *buffer;
    size_t size, limit;
    tern_status status;
} tern_writer;

static tern_writer write_for(const tern_run *r, size_t stage) {
    return (tern_writer){&r->scratch->buffers[stage], 0, r->scratch->limit, TERN_OK};
}

static void write_bytes(tern_writer *w, const char *bytes, size_t size) {
    if (w->status != TERN_OK || size == 0)
        return;
    if (size > w->limit - w->size) {
        w->status = TERN_ERR_TOKENIZER_PATTERN;
        return;
    }
    const size_t need = w->size + size;
    if (need > w->buffer->capacity) {
        char *grown = realloc(w->buffer->data, 2 * need + 64);
        if (grown == NULL) {
            w->status = TERN_ERR_NOMEM;
            return;
        }
        w->buffer->data = grown;
        w->buffer->capacity = 2 * need + 64;
    }
    memcpy(w->buffer->data + w->size, bytes, size);
    w->size = need;
}

/* Passes the text that was written to the next stage. */
static tern_status run_written(const tern_run *r, size_t stage, const tern_writer *w, bool first) {
    if (w->status != TERN_OK)
        return w->status;
    return run_from(r, stage + 1, (tern_span){w->buffer->data, w->size}, first);
}

static tern_status run_normalize(const tern_run *r, size_t stage, tern_span piece, bool first) {
    char *normal;
    size_t size;
    tern_status status = tern_normalize(piece, r->p->stages[stage].step.form, &normal, &size);
    if (status != TERN_OK)
        return status;
    if (normal == NULL)
        return run_from(r, stage + 1, piece, first);
    tern_writer w = write_for(r, stage);
    write_bytes(&w, normal, size);
    free(normal);
    return run_written(r, stage, &w, first);
}

/* Writes the text with what is put in the place of each match. */
static tern_status write_replaced(const tern_step *step, tern_regex_walk *walk, tern_writer *w) {
    const tern_span text = walk->text;
    size_t at = 0, start, end;
    for (;;) {
        bool found;
        const tern_status status = tern_regex_next(walk, &found, &start, &end);
        if (status != TERN_OK)
            return status;
        if (!found)
            break;
        write_bytes(w, text.data + at, start - at);
        write_bytes(w, step->content.data, step->content.size);
        at = end;
    }
    write_bytes(w, text.data + at, text.size - at);
    return TERN_OK;
}

static tern_status run_replace(const tern_run *r, size_t stage, tern_span piece, bool first) {
    const tern_stage *s = &r->p->stages[stage];
    tern_regex_walk walk = {.regex = s->regex, .scratch = r->scratch->regex, .text = piece};
    tern_writer w = write_for(r, stage);
    tern_status status = tern_regex_walk_begin(&walk);
    if (status == TERN_OK)
        status = write_replaced(&s->step, &walk, &w);
    tern_regex_walk_end(&walk);
    return status == TERN_OK ? run_written(r, stage, &w, first) : status;
}

static tern_status run_prepend(const tern_run *r, size_t stage, tern_span piece, bool first) {
    const tern_step *s = &r->p->stages[stage].step;
    const bool there =
        piece.size >= s->content.size && memcmp(piece.data, s->content.data, s->content.size) == 0;
    if ((s->where != TERN_PREPEND_ALWAYS && there) ||
        (s->where == TERN_PREPEND_FIRST_OF_TEXT && !first))
        return run_from(r, stage + 1, piece, first);
    tern_writer w = write_for(r, stage);
    write_bytes(&w, s->content.data, s->content.size);
    write_bytes(&w, piece.data, piece.size);
    return run_written(r, stage, &w, first);
}

/* Writes the replacement that the map has for a part of the text; false when it has none. */
static bool write_mapped(tern_writer *w, const tern_charsmap *map, tern_span text, bool shortest,
                         size_t *used) {
    tern_span to;
    const bool found = tern_charsmap_find(map, text, shortest, used, &to);
    if (found)
        write_bytes(w, to.data, to.size);
    return found;
}

/*
 * Maps a user-perceived character as the reference does: a short one becomes the replacement of its
 * shortest prefix in the map; otherwise each of its code points is looked up.
 */
static void map_whole_character(tern_writer *w, const tern_charsmap *map, tern_span character) {
    enum { SHORT_BYTES = 5 };
    size_t used;
    if (character.size <= SHORT_BYTES && write_mapped(w, map, character, true, &used))
        return;
    for (size_t at = 0, size; at < character.size; at += size) {
        size = tern_utf8_next(character.data + at, character.size - at).size;
        const tern_span one = {character.data + at, size};
        if (!write_mapped(w, map, one, true, &used))
            write_bytes(w, one.data, size);
    }
}

static tern_status run_charsmap(const tern_run *r, size_t stage, tern_span piece, bool first) {
    const tern_stage *s = &r->p->stages[stage];
    tern_writer w = write_for(r, stage);
    for (size_t at = 0, size; at < piece.size && w.status == TERN_OK; at += size) {
        const tern_span rest = {piece.data + at, piece.size - at};
        if (s->step.by_character) {
            size = tern_whole_character(rest);
            map_whole_character(&w, &s->charsmap, (tern_span){rest.data, size});
        } else if (!write_mapped(&w, &s->charsmap, rest, false, &size)) {
            size = tern_utf8_next(rest.data, rest.size).size;
            write_bytes(&w, rest.data, size);
        }
    }
    return run_written(r, stage, &w, first);
}

static tern_status run_characters(const tern_run *r, size_t stage, tern_span piece, bool first) {
    tern_writer w = write_for(r, stage);
    for (size_t at = 0; at < piece.size;) {
        const tern_utf8 c = tern_utf8_next(piece.data + at, piece.size - at);
        char mapped[TERN_MAPPED_BYTES];
        write_bytes(&w, mapped, tern_map_character(r->p->stages[stage].step.map, c.code, mapped));
        at += c.size;
    }
    return run_written(r, stage, &w, first);
}

static bool ends_with(const tern_writer *w, const char *text, size_t size) {
    return w->size >= size && memcmp(w->buffer->data + w->size - size, text, size) == 0;
}

static tern_status run_spaces(const tern_run *r, size_t stage, tern_span piece, bool first) {
    static const char visible[] = "\xE2\x96\x81";
    enum { VISIBLE_BYTES = 3 };
    const tern_step *s = &r->p->stages[stage].step;
    tern_writer w = write_for(r, stage);
    bool skips = false;
    size_t at = 0;
    while (s->fewer && at < piece.size && piece.data[at] == ' ')
        at++;
    if (s->left && (at < piece.size || !s->fewer))
        write_bytes(&w, visible, VISIBLE_BYTES);
    for (; at < piece.size; at++) {
        const bool space = piece.data[at] == ' ';
        if (!space || !skips)
            write_bytes(&w, space ? visible : piece.data + at, space ? VISIBLE_BYTES : 1);
        skips = s->fewer && space;
    }
    while (s->fewer && ends_with(&w, visible, VISIBLE_BYTES))
        w.size -= VISIBLE_BYTES;
    return run_written(r, stage, &w, first);
}

static tern_status run_bytes(const tern_run *r, size_t stage, tern_span piece, bool first) {
    tern_writer w = write_for(r, stage);
    for (size_t i = 0; i < piece.size; i++) {
        const uint32_t code = tern_byte_to_char((unsigned char)piece.data[i]);
        const char two[] = {(char)(0xC0 | code >> 6), (char)(0x80 | (code & 0x3F))};
        const char one = (char)code;
        write_bytes(&w, code < 0x80 ? &one : two, code < 0x80 ? 1 : 2);
    }
    return run_written(r, stage, &w, first);
}

static tern_status run_strip(const tern_run *r, size_t stage, tern_span piece, bool first) {
    const tern_step *s = &r->p->stages[stage].step;
    const size_t left = s->left ? tern_space_before(piece) : 0;
    const tern_span rest = {piece.data + left, piece.size - left};
    const size_t right = s->right ? tern_space_behind(rest) : 0;
    return run_from(r, stage + 1, (tern_span){rest.data, rest.size - right}, first && left == 0);
}

static tern_status run_added(const tern_run *r, size_t stage, tern_span piece, bool first) {
    tern_added_walk walk = {.set = r->sink->normalized,
                            .text = piece,
                            .parse = r->sink->parse,
                            .scratch = r->scratch->regex};
    for (bool found = true; found;) {
        const size_t at = walk.at;
        size_t start = piece.size;
        int32_t id;
        found = tern_added_next(&walk, &start, &id);
        const tern_span before = {piece.data + at, start > at ? start - at : 0};
        tern_status status = run_from(r, stage + 1, before, first && at == 0);
        if (status == TERN_OK && found)
            status = r->sink->added(r->sink->user, id);
        if (status != TERN_OK)
            return status;
    }
    return TERN_OK;
}

/* ---- splitting ------------------------------------------------------------------------------- */

/* Joins matches and gaps to pieces as the behavior says, and passes them on when they are
 * complete. */
typedef struct tern_splitter {
    const tern_run *r;
    size_t stage;
    tern_split_behavior behavior;
    const char *begin; /* start of the text */
    bool first;
    tern_span held; /* the piece that may still grow */
    bool holds, was_match;
} tern_splitter;

static tern_status hand_on(const tern_splitter *s, tern_span piece) {
    return run_from(s->r, s->stage + 1, piece, s->first && piece.data == s->begin);
}

static tern_status release(tern_splitter *s) {
    const bool holds = s->holds;
    s->holds = false;
    return holds ? hand_on(s, s->held) : TERN_OK;
}

static bool grows(const tern_splitter *s, bool match) {
    switch (s->behavior) {
    case TERN_SPLIT_CONTIGUOUS:
        return match == s->was_match;
    case TERN_SPLIT_WITH_PREVIOUS:
        return match && !s->was_match;
    case TERN_SPLIT_WITH_NEXT:
        return !match && s->was_match;
    default:
        return false;
    }
}

static tern_status take(tern_splitter *s, tern_span part, bool match) {
    if (s->behavior == TERN_SPLIT_ISOLATED || s->behavior == TERN_SPLIT_REMOVED)
        return s->behavior == TERN_SPLIT_REMOVED && match ? TERN_OK : hand_on(s, part);
    if (s->holds && grows(s, match)) {
        s->held.size += part.size;
        s->was_match = match;
        return TERN_OK;
    }
    const tern_status status = release(s);
    s->held = part;
    s->holds = true;
    s->was_match = match;
    return status;
}

/* Hands on the matches and what is between them. */
static tern_status take_all(tern_splitter *out, tern_regex_walk *walk, bool invert) {
    const tern_span piece = walk->text;
    for (size_t at = 0;;) {
        bool found;
        size_t start = piece.size, end = piece.size;
        tern_status status = tern_regex_next(walk, &found, &start, &end);
        if (status == TERN_OK && start > at)
            status = take(out, (tern_span){piece.data + at, start - at}, invert);
        if (status == TERN_OK && found)
            status = take(out, (tern_span){piece.data + start, end - start}, !invert);
        if (status != TERN_OK)
            return status;
        if (!found)
            return release(out);
        at = end;
    }
}

static tern_status run_split(const tern_run *r, size_t stage, tern_span piece, bool first) {
    const tern_stage *s = &r->p->stages[stage];
    tern_splitter out = {r, stage, s->step.behavior, piece.data, first, {"", 0}, false, false};
    tern_regex_walk walk = {.regex = s->regex, .scratch = r->scratch->regex, .text = piece};
    tern_status status = tern_regex_walk_begin(&walk);
    if (status == TERN_OK)
        status = take_all(&out, &walk, s->step.invert);
    tern_regex_walk_end(&walk);
    return status;
}

/* Passes on the words and the punctuation of a text; white space belongs to neither. */
static tern_status run_words(const tern_run *r, size_t stage, tern_span piece, bool first) {
    size_t start = 0;
    for (size_t at = 0, end; at < piece.size; at = end) {
        const tern_utf8 c = tern_utf8_next(piece.data + at, piece.size - at);
        const tern_word_class kind = tern_word_class_of(c.code);
        end = at + c.size;
        if (kind == TERN_IN_WORD && end < piece.size)
            continue;
        const size_t word_end = kind == TERN_IN_WORD ? end : at;
        const tern_span word = {piece.data + start, word_end - start};
        tern_status status = run_from(r, stage + 1, word, first && start == 0);
        if (status == TERN_OK && kind == TERN_PUNCTUATION)
            status = run_from(r, stage + 1, (tern_span){piece.data + at, c.size}, first && at == 0);
        if (status != TERN_OK)
            return status;
        start = end;
    }
    return TERN_OK;
}

/* SentencePiece puts its space in front even of a text of which nothing is left. */
static bool takes_nothing(const tern_run *r, size_t stage) {
    return stage > 0 && stage < r->p->n && r->p->stages[stage].step.kind == TERN_STEP_SPACES;
}

/* Depth of the recursion: the number of stages. */
static tern_status run_from(const tern_run *r, size_t stage, tern_span piece, bool first) {
    if (piece.size == 0 && !takes_nothing(r, stage))
        return TERN_OK;
    if (stage == r->p->n)
        return r->sink->piece(r->sink->user, piece);
    switch (r->p->stages[stage].step.kind) {
    case TERN_STEP_NORMALIZE:
        return run_normalize(r, stage, piece, first);
    case TERN_STEP_CHARSMAP:
        return run_charsmap(r, stage, piece, first);
    case TERN_STEP_CHARACTERS:
        return run_characters(r, stage, piece, first);
    case TERN_STEP_REPLACE:
        return run_replace(r, stage, piece, first);
    case TERN_STEP_PREPEND:
        return run_prepend(r, stage, piece, first);
    case TERN_STEP_STRIP:
        return run_strip(r, stage, piece, first);
    case TERN_STEP_SPACES:
        return run_spaces(r, stage, piece, first);
    case TERN_STEP_ADDED:
        return run_added(r, stage, piece, first);
    case TERN_STEP_SPLIT:
        return run_split(r, stage, piece, first);
    case TERN_STEP_WORDS:
        return run_words(r, stage, piece, first);
    case TERN_STEP_BYTES:
        break;
    }
    return run_bytes(r, stage, piece, first);
}

tern_regex_scratch *tern_pipeline_regex_scratch(tern_pipeline_scratch *scratch) {
    return scratch->regex;
}

tern_status tern_pipeline_run(const tern_pipeline *p, tern_pipeline_scratch *scratch,
                              tern_span text, bool first, const tern_piece_sink *sink) {
    enum { GROWTH = 32, ALWAYS = 4096 }; /* U+2581 in the byte alphabet makes six bytes of one */
    scratch->limit =
        text.size < (INT32_MAX - ALWAYS) / GROWTH ? GROWTH * text.size + ALWAYS : INT32_MAX;
    const tern_run r = {p, scratch, sink};
    return run_from(&r, 0, text, first);
}
