/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/sentencepiece.h"

#include <math.h>
#include <stdlib.h>

#include "authoring/convert/protobuf.h"
#include "base/utf8.h"
#include "runtime/text/tokenizer/vocabulary.h"

/* Field numbers of sentencepiece_model.proto. */
enum { MODEL_PIECES = 1, MODEL_TRAINER = 2, MODEL_NORMALIZER = 3, MODEL_DENORMALIZER = 5 };
enum { PIECE_TEXT = 1, PIECE_SCORE = 2, PIECE_TYPE = 3 };
enum {
    TRAINER_MODEL = 3,
    TRAINER_SUFFIX = 24,
    TRAINER_BYTES = 35,
    TRAINER_BOS = 41,
    TRAINER_EOS = 42
};
enum { NORMALIZER_MAP = 2, NORMALIZER_PREFIX = 3, NORMALIZER_FEWER = 4, NORMALIZER_MARKS = 5 };

typedef struct reader {
    sentencepiece *s;
    const char *name;
    tern_error *err;
    bool suffix, marks, decodes;
    uint64_t model;
} reader;

static tern_status fail(const reader *r, const char *what) {
    return tern_fail(r->err, TERN_ERR_TOKENIZER_DATA, "%s: %s", r->name, what);
}

static tern_status refuse(const reader *r, const char *what) {
    return tern_fail(r->err, TERN_ERR_TOKENIZER_MODEL, "%s: %s not supported", r->name, what);
}

static tern_status broken(const reader *r) {
    return fail(r,
                "is not a model of SentencePiece (a protocol buffer of pieces); if it is another "
                "tokenizer's, AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER) of "
                "transformers makes a tokenizer.json");
}

/* Takes one field of a message. */
typedef tern_status take(reader *r, const protobuf_field *f);

static tern_status read_message(reader *r, tern_span bytes, take *field) {
    protobuf p = protobuf_of(bytes);
    protobuf_field f;
    tern_status status = TERN_OK;
    for (protobuf_step step; status == TERN_OK && (step = protobuf_next(&p, &f)) != PROTOBUF_END;)
        status = step == PROTOBUF_FIELD ? field(r, &f) : broken(r);
    return status;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static tern_status take_piece(reader *r, const protobuf_field *f) {
    sentencepiece_piece *piece = &r->s->pieces[r->s->n];
    if (f->number == PIECE_TEXT && f->type == PROTOBUF_BYTES)
        piece->text = f->bytes;
    else if (f->number == PIECE_SCORE && f->type == PROTOBUF_FIXED32)
        piece->score = protobuf_float(f);
    else if (f->number == PIECE_TYPE && f->type == PROTOBUF_VARINT)
        piece->type = f->value <= SENTENCEPIECE_BYTE ? (sentencepiece_type)f->value : 0;
    return TERN_OK;
}

static bool is_text(tern_span text) {
    return text.size > 0 && text.size <= SENTENCEPIECE_LONGEST &&
           tern_utf8_is_valid(text.data, text.size);
}

static tern_status check_piece(const reader *r) {
    const size_t i = r->s->n;
    const sentencepiece_piece *piece = &r->s->pieces[i];
    const char *what = NULL;
    if (!is_text(piece->text))
        what = "is not 1 to 1024 bytes of UTF-8";
    else if (!isfinite(piece->score))
        what = "has a score that is not finite";
    else if (piece->type == SENTENCEPIECE_UNUSED || piece->type == 0)
        what = piece->type == 0 ? "has an unknown type"
                                : "is an unused one, which tern does not support";
    return what == NULL
               ? TERN_OK
               : tern_fail(r->err, TERN_ERR_TOKENIZER_DATA, "%s: piece %zu %s", r->name, i, what);
}

static tern_status add_piece(reader *r, tern_span bytes) {
    sentencepiece *s = r->s;
    s->pieces[s->n] = (sentencepiece_piece){.text = {"", 0}, .type = SENTENCEPIECE_NORMAL};
    tern_status status = read_message(r, bytes, take_piece);
    if (status == TERN_OK)
        status = check_piece(r);
    if (status != TERN_OK)
        return status;
    const sentencepiece_type type = s->pieces[s->n].type;
    if (type == SENTENCEPIECE_UNKNOWN && s->unknown >= 0)
        return fail(r, "has two unknown pieces");
    if (type == SENTENCEPIECE_UNKNOWN)
        s->unknown = (int32_t)s->n;
    s->n_user_defined += type == SENTENCEPIECE_USER_DEFINED;
    s->n++;
    return TERN_OK;
}

/* ---- settings -------------------------------------------------------------------------------- */

static tern_status take_trainer(reader *r, const protobuf_field *f) {
    if (f->type != PROTOBUF_VARINT)
        return TERN_OK;
    const int32_t id = f->value < TERN_TOKENIZER_MAX_TOKENS ? (int32_t)f->value : TERN_TOKEN_NONE;
    if (f->number == TRAINER_MODEL)
        r->model = f->value;
    else if (f->number == TRAINER_SUFFIX)
        r->suffix = f->value != 0;
    else if (f->number == TRAINER_BYTES)
        r->s->byte_fallback = f->value != 0;
    else if (f->number == TRAINER_BOS)
        r->s->bos = id;
    else if (f->number == TRAINER_EOS)
        r->s->eos = id;
    return TERN_OK;
}

static tern_status take_normalizer(reader *r, const protobuf_field *f) {
    const bool number = f->type == PROTOBUF_VARINT;
    if (f->number == NORMALIZER_MAP && f->type == PROTOBUF_BYTES)
        r->s->charsmap = f->bytes;
    else if (f->number == NORMALIZER_PREFIX && number)
        r->s->prefix = f->value != 0;
    else if (f->number == NORMALIZER_FEWER && number)
        r->s->fewer_spaces = f->value != 0;
    else if (f->number == NORMALIZER_MARKS && number)
        r->marks = f->value != 0;
    return TERN_OK;
}

static tern_status take_denormalizer(reader *r, const protobuf_field *f) {
    r->decodes = r->decodes || (f->number == NORMALIZER_MAP && f->bytes.size > 0);
    return TERN_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static tern_status take_part(reader *r, const protobuf_field *f) {
    if (f->type != PROTOBUF_BYTES)
        return TERN_OK;
    switch (f->number) {
    case MODEL_PIECES:
        return add_piece(r, f->bytes);
    case MODEL_TRAINER:
        return read_message(r, f->bytes, take_trainer);
    case MODEL_NORMALIZER:
        return read_message(r, f->bytes, take_normalizer);
    case MODEL_DENORMALIZER:
        return read_message(r, f->bytes, take_denormalizer);
    default:
        return TERN_OK;
    }
}

/* Room for all pieces; fails for what is not a message. */
static tern_status make_room(reader *r, tern_span bytes) {
    protobuf p = protobuf_of(bytes);
    protobuf_field f;
    size_t n = 0;
    protobuf_step step;
    while ((step = protobuf_next(&p, &f)) == PROTOBUF_FIELD)
        n += f.number == MODEL_PIECES && f.type == PROTOBUF_BYTES;
    if (step == PROTOBUF_BROKEN || n == 0)
        return broken(r);
    if (n > TERN_TOKENIZER_MAX_TOKENS)
        return fail(r, "has more pieces than tern supports");
    r->s->pieces = calloc(n, sizeof *r->s->pieces);
    return r->s->pieces != NULL
               ? TERN_OK
               : tern_fail(r->err, TERN_ERR_NOMEM, "%s: no memory for %zu pieces", r->name, n);
}

static bool is_control(const sentencepiece *s, int32_t id) {
    return id >= 0 && (size_t)id < s->n && s->pieces[id].type == SENTENCEPIECE_CONTROL;
}

static tern_status check(const reader *r) {
    sentencepiece *s = r->s;
    if (s->unknown < 0)
        return fail(r, "has no unknown piece");
    if (r->model != SENTENCEPIECE_UNIGRAM && r->model != SENTENCEPIECE_BPE)
        return refuse(r, "a model of words or characters (Unigram and BPE are) is");
    if (r->suffix)
        return refuse(r, "treat_whitespace_as_suffix is");
    if (!r->marks)
        return refuse(r, "escape_whitespaces that is false is");
    if (r->decodes)
        return refuse(r, "a denormalizer with replacements is");
    s->model = (sentencepiece_model)r->model;
    s->bos = is_control(s, s->bos) ? s->bos : TERN_TOKEN_NONE;
    s->eos = is_control(s, s->eos) ? s->eos : TERN_TOKEN_NONE;
    return TERN_OK;
}

tern_status sentencepiece_parse(tern_span bytes, const char *name, sentencepiece *out,
                                tern_error *err) {
    enum { DEFAULT_BOS = 1, DEFAULT_EOS = 2 };
    sentencepiece s = {.unknown = TERN_TOKEN_NONE,
                       .bos = DEFAULT_BOS,
                       .eos = DEFAULT_EOS,
                       .charsmap = {"", 0},
                       .prefix = true,
                       .fewer_spaces = true};
    reader r = {.s = &s, .name = name, .err = err, .marks = true, .model = SENTENCEPIECE_UNIGRAM};
    tern_status status = make_room(&r, bytes);
    if (status == TERN_OK)
        status = read_message(&r, bytes, take_part);
    if (status == TERN_OK)
        status = check(&r);
    if (status != TERN_OK) {
        sentencepiece_free(&s);
        return status;
    }
    *out = s;
    return TERN_OK;
}

void sentencepiece_free(sentencepiece *s) {
    free(s->pieces);
    s->pieces = NULL;
    s->n = 0;
}
