/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_GRAMMAR_STACKS_H
#define TERN_RUNTIME_TEXT_GRAMMAR_STACKS_H

/*
 * Tells where a program can be after some bytes: a set of places. A place is a node that reads a
 * byte, and a stack. Stacks share what they have in common: a stack is a frame and the stack below
 * it, and equal stacks have one number. Equal sets (states) have one number, too, so the number of
 * a state says all about it.
 *
 * A pool holds the stacks and states that were met. It only grows; its owner begins a new one with
 * those that are still wanted (tern_stacks_copy).
 */

#include "runtime/text/grammar/program.h"

enum {
    TERN_STACKS_NONE = 0, /* the empty stack; the state in which nothing can be read */
    TERN_STACKS_MOST_DEPTH = TERN_GRAMMAR_LIMIT(4096),
    TERN_STACKS_MOST_PLACES = TERN_GRAMMAR_LIMIT(4096), /* places of one state */
    TERN_STACKS_MOST_FRAMES = TERN_GRAMMAR_LIMIT(1 << 16),
    TERN_STACKS_MOST_STATES = TERN_GRAMMAR_LIMIT(1 << 15),
    TERN_STACKS_MOST_KEPT = TERN_GRAMMAR_LIMIT(1 << 19) /* places of all states */
};

typedef struct tern_frame {
    uint32_t node;  /* CALL: returns after it; REPEAT */
    int32_t count;  /* rounds of a REPEAT that have begun */
    uint32_t below; /* the stack below; a smaller number than this one's */
    uint32_t depth; /* frames, with this one */
} tern_frame;

typedef struct tern_spot {
    uint32_t node, stack;
} tern_spot;

typedef struct tern_stacks_state {
    uint32_t first, n; /* places */
    bool whole;        /* the text may end here */
    uint8_t loop;      /* kinds whose characters may all follow, `room` times */
    int32_t room;
    uint32_t *row; /* [n_classes] state after a byte of each class, + 1; 0: not known yet. May be
                      NULL */
} tern_stacks_state;

typedef struct tern_stacks_visit {
    tern_spot place;
    uint32_t round;
} tern_stacks_visit;

typedef struct tern_stacks {
    const tern_program *program;
    const char *name;          /* its name in messages */
    tern_frame *frames;        /* [n_frames]; 0 is not a frame */
    tern_spot *places;         /* [n_places] of the states */
    tern_stacks_state *states; /* [n_states] */
    size_t n_frames, n_places, n_states;
    size_t frames_capacity, places_capacity, states_capacity;
    uint32_t *frame_table, *state_table; /* numbers by hash; 0: none */
    size_t frame_slots, state_slots;

    /* the state that is being found */
    tern_spot *todo, *found;
    size_t n_todo, n_found, todo_capacity, found_capacity;
    tern_stacks_visit *visits;
    size_t visit_slots, n_visits;
    uint32_t round;
    bool whole;

    uint64_t work; /* steps so far */
    uint64_t most_work;
    tern_status status;
    const char *why; /* reason of a failure; static */
} tern_stacks;

/* Makes an empty pool; TERN_ERR_NOMEM. Free in any case. */
TERN_MUST_CHECK tern_status tern_stacks_start(tern_stacks *s, const tern_program *program);
void tern_stacks_free(tern_stacks *s);

/*
 * The functions below return the number of a state. It is TERN_STACKS_NONE where nothing can be
 * read and the text is not whole, and after a failure, which s->status and s->why tell:
 * TERN_ERR_NOMEM, or TERN_ERR_GRAMMAR when a limit is reached. After a failure the pool must not be
 * used.
 */
uint32_t tern_stacks_begin(tern_stacks *s);
uint32_t tern_stacks_after(tern_stacks *s, uint32_t state, uint8_t byte);

/* Does the same as _after, and remembers the result in the state. */
uint32_t tern_stacks_find_next(tern_stacks *s, uint32_t state, uint8_t byte);

/* Does the same, but looks the result up where it is remembered. */
static inline uint32_t tern_stacks_next(tern_stacks *s, uint32_t state, uint8_t byte) {
    const uint32_t *row = s->states[state].row;
    const uint32_t known = row != NULL ? row[s->program->classes[byte]] : 0;
    return known != 0 ? known - 1 : tern_stacks_find_next(s, state, byte);
}

/*
 * Copies a state of another pool of the same program. Counts of repetitions that no text of `reach`
 * bytes can tell apart become the same; INT32_MAX: they stay.
 */
uint32_t tern_stacks_copy(tern_stacks *s, const tern_stacks *from, uint32_t state, int32_t reach);

/* True if all texts of at most `reach` characters of these kinds may follow. False may also mean
 * that this is not known. */
static inline bool tern_stacks_takes(const tern_stacks *s, uint32_t state, unsigned kinds,
                                     int32_t reach) {
    return (kinds & ~(unsigned)s->states[state].loop) == 0 && s->states[state].room >= reach;
}

#endif
