/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Picks tokens from the hidden states of wanted rows. All picks that fit into the slots take the
 * same steps together: one scan of the head's image for bounds, candidates, exact logits of these,
 * a decision; then one product with the whole head for those picks that bounds do not decide. Rows
 * that are picked from one after another can be scanned or multiplied together in advance.
 */

#include "runtime/engine/forward/internal.h"
#include "runtime/engine/forward/together.h"

/* The picks in the runner's first slots. */
typedef struct group {
    tern_runner *r;
    size_t n;
    size_t first, rows; /* wanted rows from the first open slot's to the last one's */
    size_t base;        /* the wanted row whose bounds or logits are the first in scratch.lower */
    size_t candidates;  /* of all open slots */
} group;

/* Runs a body over slots, each of which one worker handles; with one slot only the caller runs
 * it. */
static void for_slots(group *g, tern_team_body *body) {
    if (g->n == 1)
        body((tern_worker){.team = g->r->team, .index = 0, .count = 1}, g);
    else
        tern_stages_run(g->r->stages, g->r->team, body, g, TERN_STAGE_ALONE);
}

static tern_part my_slots(const group *g, tern_worker worker) {
    return worker.count == 1 ? (tern_part){0, g->n} : tern_team_split(worker, g->n, 1);
}

/* Finds the rows from the first open slot to the last one; false when none is open. */
static bool find_rows(group *g) {
    const tern_pick_slot *first = NULL, *last = NULL;
    for (size_t i = 0; i < g->n; i++)
        if (g->r->slots[i].open) {
            first = first != NULL ? first : &g->r->slots[i];
            last = &g->r->slots[i];
        }
    if (first == NULL)
        return false;
    g->first = g->base = first->row;
    g->rows = last->row - g->first + 1;
    return true;
}

/* The slot's row of lower or upper, or of logits. */
static float *place_of(const group *g, float *rows, const tern_pick_slot *slot) {
    return rows + (slot->row - g->base) * g->r->model->config.n_vocab;
}

/* ---- rows computed in advance -------------------------------------------------------------- */

static bool is_foreseen(const tern_runner *r, size_t row, bool exact) {
    const tern_foreseen *f = &r->foreseen;
    return row >= f->first && row - f->first < f->n && f->exact == exact &&
           (exact || f->fresh[row - f->first]);
}

/* True if the bounds or logits of all open slots are there; then they are used. Otherwise all of
 * them are forgotten, because their memory is needed. */
static bool all_foreseen(group *g, bool exact) {
    tern_runner *r = g->r;
    bool all = r->foreseen.n > 0;
    for (size_t i = 0; i < g->n && all; i++)
        all = !r->slots[i].open || is_foreseen(r, r->slots[i].row, exact);
    if (all)
        g->base = r->foreseen.first;
    else
        r->foreseen.n = 0;
    return all;
}

/* ---- bounds -------------------------------------------------------------------------------- */

static void scan_part(tern_worker worker, void *argument) {
    const group *g = argument;
    const tern_head_image *image = &g->r->model->image;
    const tern_matrix *m = &image->scan.matrix;
    const size_t own = image->scan.first_row;
    const tern_scratch *w = &g->r->scratch;
    const tern_activations x = tern_wanted_activations(g->r, &image->scan, g->first);
    const tern_kernel_row *kernel = tern_linear_kernel(&image->scan, g->rows);
    tern_pieces pieces = tern_team_pieces(worker, m->rows, TERN_ROW_GROUP);
    if (worker.index == 0)
        tern_tally_count(g->r->tally, kernel);
    for (tern_part piece; tern_pieces_next(&pieces, &piece);) {
        const tern_tile tile = {.t0 = 0, .t1 = g->rows, .r0 = piece.begin, .r1 = piece.end};
        kernel->fn.matmul(m, &x, &tile, w->lower + own, image->scan.all_rows);
        for (size_t i = 0; i < g->n; i++) {
            const tern_pick_slot *slot = &g->r->slots[i];
            if (slot->open)
                tern_head_bounds(image, slot->slack, piece.begin, piece.end,
                                 place_of(g, w->lower, slot) + own,
                                 place_of(g, w->upper, slot) + own);
        }
    }
}

static void choose_part(tern_worker worker, void *argument) {
    const group *g = argument;
    const tern_part part = my_slots(g, worker);
    for (size_t i = part.begin; i < part.end; i++) {
        tern_pick_slot *slot = &g->r->slots[i];
        slot->open = slot->open && tern_bounds_choose(&slot->bounded);
    }
}

/* Opens a slot if its row has bounds. */
static void open_row(tern_runner *r, tern_pick_slot *slot) {
    const tern_head_image *image = &r->model->image;
    const tern_activations x = tern_wanted_activations(r, &image->scan, slot->row);
    slot->slack = tern_head_slack_of(image, x.x, x.q, x.d);
    slot->open = slot->slack.certain;
}

/* Opens the slots that bounds may decide. */
static void open_slots(group *g, tern_pick *picks) {
    tern_runner *r = g->r;
    for (size_t i = 0; i < g->n; i++) {
        tern_pick_slot *slot = &r->slots[i];
        *slot = (tern_pick_slot){
            .row = picks[i].row, .pick = &picks[i], .bounded = {.sampler = picks[i].sampler}};
        picks[i].status = TERN_ERR_STATE; /* not decided */
        if (tern_head_is_imaged(&r->model->image) && r->buffer_row != picks[i].row &&
            tern_bounds_help(picks[i].sampler))
            open_row(r, slot);
    }
}

void tern_runner_scan_own(tern_runner *r, size_t n) {
    group g = {.r = r, .n = n};
    for (size_t i = 0; i < n; i++)
        open_row(r, &r->slots[i]);
    if (find_rows(&g))
        tern_stages_run(r->stages, r->team, scan_part, &g, TERN_STAGE_SCAN);
}

/* All ranks scan their rows of the head; this one gets the bounds. If it does not, all logits are
 * asked for, which reports why. */
static bool scan_together(group *g) {
    tern_runner *r = g->r;
    tern_together_begin_scan(r, g->n);
    tern_stages_run(r->stages, r->team, scan_part, g, TERN_STAGE_SCAN);
    tern_status status = tern_runner_join_head(r, r->scratch.lower, g->rows, NULL);
    if (status == TERN_OK)
        status = tern_runner_join_head(r, r->scratch.upper, g->rows, NULL);
    tern_together_end(r);
    return status == TERN_OK;
}

/* Finds bounds of the open slots; closes them where it cannot. */
static void scan(group *g) {
    tern_runner *r = g->r;
    for (size_t i = 0; i < g->n; i++)
        if (r->slots[i].open)
            tern_count_head(r, r->slots[i].row, 1);
    if (!tern_together_leads(r))
        tern_stages_run(r->stages, r->team, scan_part, g, TERN_STAGE_SCAN);
    else if (!scan_together(g))
        for (size_t i = 0; i < g->n; i++)
            r->slots[i].open = false;
}

/* Finds candidates from bounds. This changes the bounds, so they do not stay fresh. */
static void find_candidates(group *g) {
    tern_runner *r = g->r;
    if (!all_foreseen(g, false))
        scan(g);
    for (size_t i = 0; i < g->n; i++) {
        tern_pick_slot *slot = &r->slots[i];
        if (!slot->open)
            continue;
        slot->bounded.lower = place_of(g, r->scratch.lower, slot);
        slot->bounded.upper = place_of(g, r->scratch.upper, slot);
        if (r->foreseen.n > 0)
            r->foreseen.fresh[slot->row - r->foreseen.first] = false;
    }
    for_slots(g, choose_part);
}

/* ---- exact logits of candidates ---------------------------------------------------------------
 */

/* Numbers the candidates of all slots consecutively, and counts them in the work done. */
static void count_candidates(group *g) {
    tern_runner *r = g->r;
    g->candidates = 0;
    for (size_t i = 0; i < g->n; i++) {
        tern_pick_slot *slot = &r->slots[i];
        slot->before = g->candidates;
        g->candidates += slot->open ? slot->bounded.n : 0;
        r->work.scans += slot->open;
    }
    r->work.head_rows += g->candidates;
}

/* Computes candidates [begin, end) of a slot. Each row of the head is multiplied as a matrix of one
 * row, and its logit goes to the token's place. */
static void multiply_candidates(const group *g, const tern_linear *head, const tern_pick_slot *slot,
                                size_t begin, size_t end) {
    const uint32_t *ids = tern_bounds_candidates(&slot->bounded);
    float *logits = tern_bounds_exact(&slot->bounded);
    const tern_activations x = tern_wanted_activations(g->r, head, slot->row);
    const tern_tile tile = {.t0 = 0, .t1 = 1, .r0 = 0, .r1 = 1};
    tern_matrix row = head->matrix;
    row.rows = 1;
    for (size_t i = begin; i < end; i++) {
        row.data = tern_linear_row(head, ids[i]);
        head->gemv->fn.matmul(&row, &x, &tile, logits + ids[i], 1);
    }
}

static void candidates_part(tern_worker worker, void *argument) {
    const group *g = argument;
    const tern_linear *head = tern_head_of(g->r, worker);
    const tern_part part = tern_team_split(worker, g->candidates, 1);
    if (worker.index == 0 && g->candidates > 0)
        tern_tally_count(g->r->tally, head->gemv);
    for (size_t i = 0; i < g->n; i++) {
        const tern_pick_slot *slot = &g->r->slots[i];
        const size_t end = slot->before + (slot->open ? slot->bounded.n : 0);
        const size_t from = part.begin > slot->before ? part.begin : slot->before;
        const size_t to = part.end < end ? part.end : end;
        if (from < to)
            multiply_candidates(g, head, slot, from - slot->before, to - slot->before);
    }
}

static void decide_part(tern_worker worker, void *argument) {
    const group *g = argument;
    const tern_part part = my_slots(g, worker);
    for (size_t i = part.begin; i < part.end; i++) {
        tern_pick_slot *slot = &g->r->slots[i];
        if (slot->open && tern_bounds_decide(&slot->bounded, &slot->pick->token))
            slot->pick->status = TERN_OK;
    }
}

/* Makes the picks that bounds decide. */
static void pick_by_bounds(group *g) {
    tern_runner *r = g->r;
    find_candidates(g);
    count_candidates(g);
    tern_stages_run(r->stages, r->team, candidates_part, g, TERN_STAGE_ROWS);
    for_slots(g, decide_part);
}

/* ---- all logits ------------------------------------------------------------------------------ */

/* Opens the slots that are not decided yet. */
static void open_rest(group *g) {
    for (size_t i = 0; i < g->n; i++)
        g->r->slots[i].open = g->r->slots[i].pick->status != TERN_OK;
}

static void sample_part(tern_worker worker, void *argument) {
    const group *g = argument;
    const size_t n_vocab = g->r->model->config.n_vocab;
    const tern_part part = my_slots(g, worker);
    for (size_t i = part.begin; i < part.end; i++) {
        const tern_pick_slot *slot = &g->r->slots[i];
        tern_pick *pick = slot->pick;
        if (!slot->open)
            continue;
        const float *logits = place_of(g, g->r->scratch.lower, slot);
        pick->status = tern_check_logits(logits, 1, n_vocab, &pick->err);
        if (pick->status == TERN_OK)
            pick->status = tern_sampler_pick(pick->sampler, logits, &pick->token, &pick->err);
    }
}

/* Picks from the logits of one row, which may be in the buffer already. */
static void pick_from_buffer(tern_runner *r, tern_pick *pick) {
    const float *logits;
    pick->status = tern_runner_buffered(r, pick->row, &logits, &pick->err);
    if (pick->status == TERN_OK)
        pick->status = tern_sampler_pick(pick->sampler, logits, &pick->token, &pick->err);
}

static void pick_from_all(group *g, tern_pick *picks) {
    if (g->r->foreseen.n > 0 && g->r->foreseen.exact && all_foreseen(g, true)) {
        for_slots(g, sample_part);
        return;
    }
    if (g->rows == 1) {
        for (size_t i = 0; i < g->n; i++)
            if (g->r->slots[i].open)
                pick_from_buffer(g->r, &picks[i]);
        return;
    }
    tern_error err = {0};
    g->r->foreseen.n = 0;
    const tern_status status =
        tern_runner_multiply_head(g->r, g->first, g->rows, g->r->scratch.lower, &err);
    if (status == TERN_OK)
        for_slots(g, sample_part);
    for (size_t i = 0; status != TERN_OK && i < g->n; i++)
        if (g->r->slots[i].open) {
            picks[i].status = status;
            picks[i].err = err;
        }
}

/* ---- rows before they are picked from -------------------------------------------------------- */

/* Finds bounds of those rows that have any. */
static void foresee_bounds(tern_runner *r, size_t first, size_t n) {
    group g = {.r = r, .n = n};
    for (size_t i = 0; i < n; i++) {
        r->slots[i] = (tern_pick_slot){.row = first + i};
        open_row(r, &r->slots[i]);
    }
    if (!find_rows(&g))
        return;
    scan(&g);
    r->foreseen.first = g.first;
    r->foreseen.n = g.rows;
    r->foreseen.exact = false;
    for (size_t i = 0; i < g.rows; i++)
        r->foreseen.fresh[i] = r->slots[g.first - first + i].open;
}

static void foresee_logits(tern_runner *r, size_t first, size_t n) {
    if (tern_runner_multiply_head(r, first, n, r->scratch.lower, NULL) != TERN_OK)
        return; /* the picks will report it */
    r->foreseen.first = first;
    r->foreseen.n = n;
    r->foreseen.exact = true;
}

void tern_runner_foresee(tern_runner *r, size_t first, size_t n, bool exact) {
    const bool logits = exact || !tern_head_is_imaged(&r->model->image);
    const size_t rows = n < r->n_picks ? n : r->n_picks;
    if (rows < 2 || r->scratch.lower == NULL || is_foreseen(r, first, logits))
        return;
    r->foreseen.n = 0;
    if (logits)
        foresee_logits(r, first, rows);
    else
        foresee_bounds(r, first, rows);
}

/* ---- the picks ------------------------------------------------------------------------------- */

static void pick_together(tern_runner *r, tern_pick *picks, size_t n) {
    group g = {.r = r, .n = n};
    open_slots(&g, picks);
    if (find_rows(&g))
        pick_by_bounds(&g);
    open_rest(&g);
    if (find_rows(&g))
        pick_from_all(&g, picks);
}

void tern_runner_picks(tern_runner *r, tern_pick *picks, size_t n) {
    for (size_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && picks[end].row - picks[first].row < r->n_picks; end++)
            ;
        pick_together(r, picks + first, end - first);
    }
}

tern_status tern_runner_pick(tern_runner *r, size_t row, tern_sampler *sampler, int32_t *token,
                             tern_error *err) {
    tern_pick pick = {.row = row, .sampler = sampler};
    tern_runner_picks(r, &pick, 1);
    if (pick.status == TERN_OK)
        *token = pick.token;
    else if (err != NULL)
        *err = pick.err;
    return pick.status;
}
