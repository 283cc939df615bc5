/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/grammar/stacks.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

/* ---- failing, growing ------------------------------------------------------------------------ */

static bool fail(tern_stacks *s, tern_status status, const char *why) {
    if (s->status == TERN_OK) {
        s->status = status;
        s->why = why;
    }
    return false;
}

static bool room(tern_stacks *s, void **items, size_t *capacity, size_t n, size_t size, size_t most,
                 const char *why) {
    if (n >= most)
        return fail(s, TERN_ERR_GRAMMAR, why);
    return tern_grow(items, capacity, n, size, most) || fail(s, TERN_ERR_NOMEM, "no memory");
}

tern_status tern_stacks_start(tern_stacks *s, const tern_program *program) {
    *s = (tern_stacks){.program = program, .most_work = UINT64_MAX};
    s->frame_slots = s->state_slots = s->visit_slots = 64;
    s->frame_table = calloc(s->frame_slots, sizeof *s->frame_table);
    s->state_table = calloc(s->state_slots, sizeof *s->state_table);
    s->visits = calloc(s->visit_slots, sizeof *s->visits);
    if (s->frame_table == NULL || s->state_table == NULL || s->visits == NULL ||
        !room(s, (void **)&s->frames, &s->frames_capacity, 0, sizeof *s->frames, 1, "") ||
        !room(s, (void **)&s->states, &s->states_capacity, 0, sizeof *s->states, 1, "")) {
        s->why = "no memory";
        return s->status = TERN_ERR_NOMEM;
    }
    s->frames[s->n_frames++] = (tern_frame){0};
    s->states[s->n_states++] = (tern_stacks_state){0};
    return TERN_OK;
}

void tern_stacks_free(tern_stacks *s) {
    for (size_t i = 0; i < s->n_states; i++)
        free(s->states[i].row);
    free(s->frames);
    free(s->places);
    free(s->states);
    free(s->frame_table);
    free(s->state_table);
    free(s->todo);
    free(s->found);
    free(s->visits);
    *s = (tern_stacks){0};
}

/* ---- numbers by content -----------------------------------------------------------------------
 */

static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
    return hash ^ hash >> 29;
}

static uint64_t hash_frame(const tern_frame *f) {
    return mix(mix(f->node, (uint32_t)f->count), f->below);
}

static uint64_t hash_places(const tern_spot *places, size_t n, bool whole) {
    uint64_t hash = whole;
    for (size_t i = 0; i < n; i++)
        hash = mix(hash, (uint64_t)places[i].node << 32 | places[i].stack);
    return hash;
}

static uint64_t hash_number(const tern_stacks *s, uint32_t number, bool of_frame) {
    if (of_frame)
        return hash_frame(&s->frames[number]);
    const tern_stacks_state *state = &s->states[number];
    return hash_places(s->places + state->first, state->n, state->whole);
}

/* Doubles a table of numbers once it is half full. */
static bool widen(tern_stacks *s, bool of_frame, size_t n) {
    uint32_t **table = of_frame ? &s->frame_table : &s->state_table;
    size_t *slots = of_frame ? &s->frame_slots : &s->state_slots;
    if (2 * n < *slots)
        return true;
    uint32_t *wider = calloc(2 * *slots, sizeof *wider);
    if (wider == NULL)
        return fail(s, TERN_ERR_NOMEM, "no memory");
    const size_t mask = 2 * *slots - 1;
    for (size_t i = 0; i < *slots; i++) {
        if ((*table)[i] == 0)
            continue;
        size_t at = hash_number(s, (*table)[i], of_frame) & mask;
        while (wider[at] != 0)
            at = (at + 1) & mask;
        wider[at] = (*table)[i];
    }
    free(*table);
    *table = wider;
    *slots *= 2;
    return true;
}

/* The stack of a frame on top of `below`. */
static uint32_t push(tern_stacks *s, uint32_t node, int32_t count, uint32_t below) {
    const tern_frame f = {
        .node = node, .count = count, .below = below, .depth = s->frames[below].depth + 1};
    size_t at = hash_frame(&f) & (s->frame_slots - 1);
    for (; s->frame_table[at] != 0; at = (at + 1) & (s->frame_slots - 1)) {
        const tern_frame *known = &s->frames[s->frame_table[at]];
        if (known->node == node && known->count == count && known->below == below)
            return s->frame_table[at];
    }
    if (f.depth > TERN_STACKS_MOST_DEPTH) {
        fail(s, TERN_ERR_GRAMMAR, "nested too deep");
        return 0;
    }
    if (!room(s, (void **)&s->frames, &s->frames_capacity, s->n_frames, sizeof f,
              TERN_STACKS_MOST_FRAMES, "too many ways to read the text"))
        return 0;
    s->frames[s->n_frames] = f;
    s->frame_table[at] = (uint32_t)s->n_frames++;
    const uint32_t number = s->frame_table[at];
    return widen(s, true, s->n_frames) ? number : 0;
}

static int by_place(const void *a, const void *b) {
    const tern_spot *p = a;
    const tern_spot *q = b;
    const uint64_t x = (uint64_t)p->node << 32 | p->stack;
    const uint64_t y = (uint64_t)q->node << 32 | q->stack;
    return (x > y) - (x < y);
}

static bool keep_state(tern_stacks *s, size_t n) {
    return room(s, (void **)&s->states, &s->states_capacity, s->n_states, sizeof *s->states,
                TERN_STACKS_MOST_STATES, "too many states") &&
           room(s, (void **)&s->places, &s->places_capacity, s->n_places + n, sizeof *s->places,
                TERN_STACKS_MOST_KEPT, "too many ways to read the text");
}

/* Finds the loop over characters with the most room among the places of a new state. */
static void find_loop(const tern_stacks *s, tern_stacks_state *state) {
    for (uint32_t i = 0; i < state->n; i++) {
        const tern_spot p = s->places[state->first + i];
        const tern_frame *f = &s->frames[p.stack];
        const tern_node *n = &s->program->nodes[f->node];
        const bool counted = p.stack != TERN_STACKS_NONE && n->kind == TERN_NODE_REPEAT;
        const int32_t left = counted && n->most >= 0 ? n->most - f->count : INT32_MAX;
        if (s->program->nodes[p.node].loop != 0 && left > state->room) {
            state->room = left;
            state->loop = s->program->nodes[p.node].loop;
        }
    }
}

/* Returns the state of the places in s->found. */
static uint32_t state_of_found(tern_stacks *s) {
    size_t n = 0;
    if (s->status != TERN_OK || (s->n_found == 0 && !s->whole))
        return TERN_STACKS_NONE;
    if (s->n_found > 1)
        qsort(s->found, s->n_found, sizeof *s->found, by_place);
    for (size_t i = 0; i < s->n_found; i++)
        if (i == 0 || by_place(&s->found[i], &s->found[n - 1]) != 0)
            s->found[n++] = s->found[i];
    size_t at = hash_places(s->found, n, s->whole) & (s->state_slots - 1);
    for (; s->state_table[at] != 0; at = (at + 1) & (s->state_slots - 1)) {
        const tern_stacks_state *known = &s->states[s->state_table[at]];
        if (known->n == n && known->whole == s->whole &&
            (n == 0 || memcmp(s->places + known->first, s->found, n * sizeof *s->found) == 0))
            return s->state_table[at];
    }
    if (!keep_state(s, n))
        return TERN_STACKS_NONE;
    s->states[s->n_states] =
        (tern_stacks_state){.first = (uint32_t)s->n_places, .n = (uint32_t)n, .whole = s->whole};
    if (n > 0)
        memcpy(s->places + s->n_places, s->found, n * sizeof *s->found);
    s->n_places += n;
    find_loop(s, &s->states[s->n_states]);
    s->state_table[at] = (uint32_t)s->n_states++;
    const uint32_t number = s->state_table[at];
    return widen(s, false, s->n_states) ? number : TERN_STACKS_NONE;
}

/* ---- from one state to the next ---------------------------------------------------------------
 */

static bool visit_widen(tern_stacks *s) {
    const size_t mask = 2 * s->visit_slots - 1;
    tern_stacks_visit *wider = calloc(mask + 1, sizeof *wider);
    if (wider == NULL)
        return fail(s, TERN_ERR_NOMEM, "no memory");
    for (size_t i = 0; i < s->visit_slots; i++) {
        const tern_stacks_visit *v = &s->visits[i];
        size_t at = mix(v->place.node, v->place.stack) & mask;
        while (v->round == s->round && wider[at].round == s->round)
            at = (at + 1) & mask;
        if (v->round == s->round)
            wider[at] = *v;
    }
    free(s->visits);
    s->visits = wider;
    s->visit_slots = mask + 1;
    return true;
}

/* True if it is the first visit in this round. */
static bool visit(tern_stacks *s, tern_spot place) {
    const size_t mask = s->visit_slots - 1;
    size_t at = mix(place.node, place.stack) & mask;
    for (; s->visits[at].round == s->round; at = (at + 1) & mask)
        if (s->visits[at].place.node == place.node && s->visits[at].place.stack == place.stack)
            return false;
    s->visits[at] = (tern_stacks_visit){.place = place, .round = s->round};
    return 2 * ++s->n_visits < s->visit_slots || visit_widen(s);
}

static void go_to(tern_stacks *s, uint32_t node, uint32_t stack) {
    const tern_spot place = {node, stack};
    const bool reads = s->program->nodes[node].kind == TERN_NODE_BYTES;
    if (s->status != TERN_OK)
        return;
    if (reads) {
        if (room(s, (void **)&s->found, &s->found_capacity, s->n_found, sizeof place,
                 4 * (size_t)TERN_STACKS_MOST_PLACES, "too many ways to read the text"))
            s->found[s->n_found++] = place;
    } else if (visit(s, place) &&
               room(s, (void **)&s->todo, &s->todo_capacity, s->n_todo, sizeof place,
                    4 * (size_t)TERN_STACKS_MOST_PLACES, "too many ways to read the text")) {
        s->todo[s->n_todo++] = place;
    }
}

/* Goes on before round number count + 1, or after the last round. */
static void go_round(tern_stacks *s, uint32_t node, int32_t count, uint32_t below) {
    const tern_node *n = &s->program->nodes[node];
    if (n->most < 0 || count < n->most) {
        const bool endless = n->most < 0 && count >= n->least;
        go_to(s, n->other, push(s, node, endless ? n->least : count + 1, below));
    }
    if (count >= n->least)
        go_to(s, n->next, below);
}

static void go_back(tern_stacks *s, uint32_t stack) {
    const tern_frame f = s->frames[stack];
    if (stack == TERN_STACKS_NONE)
        s->whole = true;
    else if (s->program->nodes[f.node].kind == TERN_NODE_REPEAT)
        go_round(s, f.node, f.count, f.below);
    else
        go_to(s, s->program->nodes[f.node].next, f.below);
}

/* Follows all nodes that read nothing. */
static void follow(tern_stacks *s) {
    while (s->n_todo > 0 && s->status == TERN_OK) {
        const tern_spot p = s->todo[--s->n_todo];
        const tern_node *n = &s->program->nodes[p.node];
        if (++s->work > s->most_work)
            fail(s, TERN_ERR_GRAMMAR, "too much work");
        if (n->kind == TERN_NODE_SPLIT) {
            go_to(s, n->next, p.stack);
            go_to(s, n->other, p.stack);
        } else if (n->kind == TERN_NODE_REPEAT) {
            go_round(s, p.node, 0, p.stack);
        } else if (n->kind == TERN_NODE_RETURN) {
            go_back(s, p.stack);
        } else {
            const bool last = s->program->nodes[n->next].kind == TERN_NODE_RETURN;
            go_to(s, n->other, last ? p.stack : push(s, p.node, 0, p.stack));
        }
    }
}

static void begin_round(tern_stacks *s) {
    s->n_found = s->n_todo = s->n_visits = 0;
    s->whole = false;
    s->round++;
}

uint32_t tern_stacks_begin(tern_stacks *s) {
    begin_round(s);
    go_to(s, s->program->start, TERN_STACKS_NONE);
    follow(s);
    return state_of_found(s);
}

uint32_t tern_stacks_after(tern_stacks *s, uint32_t state, uint8_t byte) {
    const tern_stacks_state from = s->states[state];
    begin_round(s);
    for (uint32_t i = 0; i < from.n; i++) {
        const tern_spot p = s->places[from.first + i];
        const tern_node *n = &s->program->nodes[p.node];
        if (byte >= n->low && byte <= n->high)
            go_to(s, n->next, p.stack);
    }
    s->work += from.n;
    follow(s);
    return state_of_found(s);
}

uint32_t tern_stacks_find_next(tern_stacks *s, uint32_t state, uint8_t byte) {
    const uint8_t class = s->program->classes[byte];
    if (s->states[state].row == NULL)
        s->states[state].row = calloc(s->program->n_classes, sizeof(uint32_t));
    if (s->states[state].row == NULL) {
        fail(s, TERN_ERR_NOMEM, "no memory");
        return TERN_STACKS_NONE;
    }
    const uint32_t next = tern_stacks_after(s, state, byte);
    s->states[state].row[class] = next + 1;
    return next;
}

/* ---- between pools --------------------------------------------------------------------------- */

/* Returns one count for all counts that no `reach` further rounds can tell from this one. */
static int32_t like_count(const tern_node *n, int32_t count, int32_t reach) {
    const int64_t last = (int64_t)count + reach;
    const int32_t least = n->least > 1 ? n->least : 1;
    if (n->kind != TERN_NODE_REPEAT || count == 0)
        return count;
    if (last < n->least)
        return 1;
    return count >= least && n->most > 0 && last < n->most ? least : count;
}

static uint32_t copy_stack(tern_stacks *s, const tern_stacks *from, uint32_t stack, int32_t reach,
                           uint32_t *copies) {
    uint32_t path[TERN_STACKS_MOST_DEPTH];
    size_t n = 0;
    for (; stack != TERN_STACKS_NONE && copies[stack] == 0; stack = from->frames[stack].below)
        path[n++] = stack;
    uint32_t copy = stack == TERN_STACKS_NONE ? stack : copies[stack];
    while (n > 0) {
        const tern_frame *f = &from->frames[path[--n]];
        const tern_node *node = &s->program->nodes[f->node];
        copy = push(s, f->node, like_count(node, f->count, reach), copy);
        copies[path[n]] = copy;
    }
    return copy;
}

uint32_t tern_stacks_copy(tern_stacks *s, const tern_stacks *from, uint32_t state, int32_t reach) {
    const tern_stacks_state *old = &from->states[state];
    uint32_t *copies = calloc(from->n_frames, sizeof *copies);
    if (copies == NULL) {
        fail(s, TERN_ERR_NOMEM, "no memory");
        return TERN_STACKS_NONE;
    }
    begin_round(s);
    s->whole = old->whole;
    for (uint32_t i = 0; i < old->n && s->status == TERN_OK; i++) {
        const tern_spot p = from->places[old->first + i];
        go_to(s, p.node, copy_stack(s, from, p.stack, reach, copies));
    }
    free(copies);
    return state_of_found(s);
}
