/* SPDX-License-Identifier: Apache-2.0 */
/* tern embed: vectors of texts. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/answer/answerer.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/cli/targets.h"
#include "tools/commands/commands.h"
#include "tools/embed/pooling.h"
#include "tools/embed/vector_file.h"
#include "tools/load/loader.h"
#include "tools/prompt/prompt.h"
#include "tools/prompt/prompt_file.h"

enum { AHEAD = 64 }; /* vectors that may wait for an earlier one */

typedef struct embedding {
    const options *o;
    loaded l;
    prompts texts;
    tern_pooling pooling;
    float *vector; /* [width] */
    vector_file out;
    int status; /* of the vectors written so far */
} embedding;

/* ---- texts ----------------------------------------------------------------------------------- */

static int check_usage(const options *o) {
    const char *file = options_text(o, OPT_PROMPTS_FILE);
    const size_t n = options_count(o, OPT_TEXT);
    if (n > 0 && file != NULL) {
        complain("texts on the command line and --prompts-file exclude each other");
        return EXIT_USAGE;
    }
    if (n == 0 && file == NULL && isatty(STDIN_FILENO) == 1) {
        complain("no text: use -p TEXT, --prompts-file FILE or a pipe on standard input");
        return EXIT_USAGE;
    }
    return EXIT_DONE;
}

static int read_texts(embedding *e) {
    const char *file = options_text(e->o, OPT_PROMPTS_FILE);
    const size_t n = options_count(e->o, OPT_TEXT);
    if (n == 0)
        return prompts_read(file != NULL ? file : "-", true, &e->texts);
    int status = EXIT_DONE;
    for (size_t i = 0; i < n && status == EXIT_DONE; i++) {
        const char *words = options_nth(e->o, OPT_TEXT, i)->text;
        status = prompts_add(&e->texts, words, strlen(words));
    }
    return status;
}

/* Refuses a text without tokens, which has no vector, and one that is too long, because a part
 * would be left out. */
static int check_length(const embedding *e, size_t i, uint32_t n_ctx) {
    const size_t n = e->texts.items[i].n;
    if (n == 0)
        complain("text %zu has no tokens", i + 1);
    else if (n > n_ctx)
        complain("text %zu has %zu tokens, the context %u positions%s", i + 1, n, n_ctx,
                 n <= e->l.info.n_ctx_train ? ": --ctx makes more room" : "");
    else
        return EXIT_DONE;
    return EXIT_FAILED;
}

/* Tokenizes all texts; *longest is the largest number of tokens. */
static int tokenize(embedding *e, uint32_t *longest) {
    const uint32_t n_ctx = loader_engine_params(e->o, &e->l).n_ctx;
    *longest = 1;
    for (size_t i = 0; i < e->texts.n; i++) {
        prompt *p = &e->texts.items[i];
        int status = p->ids != NULL ? EXIT_DONE : prompt_tokenize(e->o, &e->l, p);
        if (status == EXIT_DONE)
            status = check_length(e, i, n_ctx);
        if (status != EXIT_DONE)
            return status;
        *longest = p->n > *longest ? (uint32_t)p->n : *longest;
    }
    return EXIT_DONE;
}

/* ---- the form of vectors --------------------------------------------------------------------- */

static int choose_pooling(embedding *e) {
    e->pooling = pooling_read(e->o, e->l.model);
    if (e->pooling == TERN_POOLING_RANK) {
        complain("%s scores pairs of texts, at /v1/rerank of tern serve; --pooling makes vectors",
                 e->l.info.path);
        return EXIT_FAILED;
    }
    if (e->pooling != TERN_POOLING_NONE)
        return EXIT_DONE;
    if (options_switch(e->o, OPT_STRICT)) {
        complain("strict: %s does not say how its vectors are made; --pooling does",
                 e->l.info.path);
        return EXIT_FAILED;
    }
    const bool last = tern_model_continues(e->l.model);
    e->pooling = last ? TERN_POOLING_LAST : TERN_POOLING_MEAN;
    complain("%s does not say how its vectors are made: %s taken; --pooling says another way",
             e->l.info.path, last ? "the last token's state is" : "the mean of all states is");
    return EXIT_DONE;
}

/* Sets *width to the length of the vectors. */
static int choose_width(const embedding *e, size_t *width) {
    const uint32_t asked = (uint32_t)options_integer(e->o, OPT_DIMENSIONS);
    *width = asked > 0 ? asked : e->l.info.n_embd;
    if (tern_model_shortens(e->l.model, (uint32_t)*width))
        return EXIT_DONE;
    complain("--dimensions %u: vectors of %s have %u numbers, and its file does not say that %u of "
             "them are a vector, too",
             asked, e->l.info.path, e->l.info.n_embd, asked);
    return EXIT_USAGE;
}

/* ---- all texts ------------------------------------------------------------------------------- */

static void ask(void *user, size_t number, tern_request *request) {
    const embedding *e = user;
    const prompt *p = &e->texts.items[number];
    *request = (tern_request){
        .tokens = p->ids, .n_tokens = p->n, .prompt_only = true, .pooling = e->pooling};
}

static bool go_on(void *user) {
    const embedding *e = user;
    return e->status == EXIT_DONE && !interrupt_seen();
}

static void tell(void *user, const one_answer *a) {
    embedding *e = user;
    if (e->status != EXIT_DONE)
        return;
    if (a->error != NULL) {
        complain("text %zu: %s", a->number + 1, a->error->message);
        e->status = EXIT_FAILED;
        return;
    }
    if (a->pooled == NULL)
        return; /* it was cancelled */
    const vector_row row = {.number = a->number,
                            .n_tokens = e->texts.items[a->number].n,
                            .x = e->vector,
                            .digest = a->digest};
    tern_embedding_normalize(a->pooled, e->out.width, e->vector);
    e->status = vector_file_add(&e->out, &row);
}

static int make_all(embedding *e) {
    const answer_task task = {.n = e->texts.n,
                              .ahead = AHEAD,
                              .live = LOADER_PROMPTS_AT_ONCE,
                              .ask = ask,
                              .go_on = go_on,
                              .tell = tell,
                              .user = e};
    answerer a = {.engine = e->l.engine, .width = e->l.info.n_embd};
    tern_error err = {0};
    interrupt_catch();
    const tern_status done = answerer_run(&a, &task, &err);
    answerer_close(&a);
    if (done != TERN_OK)
        return complain_error(&err);
    const int status = e->status == EXIT_DONE ? loader_check_file(&e->l) : e->status;
    return status == EXIT_DONE ? interrupt_status(EXIT_DONE) : status;
}

static int write_all(embedding *e) {
    size_t width;
    uint32_t longest;
    int status = choose_pooling(e);
    if (status == EXIT_DONE)
        status = choose_width(e, &width);
    if (status == EXIT_DONE)
        status = tokenize(e, &longest);
    if (status == EXIT_DONE)
        status = loader_open_engine_of(e->o, longest, &e->l);
    if (status != EXIT_DONE)
        return status;
    e->vector = calloc(width, sizeof *e->vector);
    if (e->vector == NULL) {
        complain("no memory for a vector of %zu numbers", width);
        return EXIT_FAILED;
    }
    status = vector_file_open(&e->out, options_text(e->o, OPT_OUTPUT), targets_mode(e->o),
                              e->texts.n, width);
    if (status == EXIT_DONE)
        status = make_all(e);
    return status == EXIT_DONE ? vector_file_commit(&e->out) : status;
}

int cmd_embed(const options *o) {
    embedding e = {.o = o};
    int status = check_usage(o);
    if (status == EXIT_DONE)
        status = loader_open_model(o, true, &e.l);
    if (status == EXIT_DONE)
        status = read_texts(&e);
    if (status == EXIT_DONE)
        status = write_all(&e);
    vector_file_close(&e.out);
    free(e.vector);
    prompts_free(&e.texts);
    loader_close(&e.l);
    return status;
}
