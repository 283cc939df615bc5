/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_WORK_TURNS_H
#define TERN_SERVE_WORK_TURNS_H

/*
 * Turns of engines that compute on the same cores. Each engine uses all of them; two at once would
 * wait for each other in every operation. So one has the turn, for a pass or several, and those
 * that want it share the time evenly: the turn goes to who has had it for the shortest time so far.
 * Who comes after a pause has no claim to the time before.
 */

#include <stdbool.h>

#include "tern/status.h"

typedef struct turns turns;

/* One engine's place; zero-initialise it. Only the functions below use its members. */
typedef struct turn {
    double used;  /* seconds */
    double began; /* when it got the turn */
    bool holds;
    struct turn *next;
} turn;

/* The clock tells seconds (tern_clock_seconds). NULL: no memory. */
turns *turns_new(double (*clock)(void));
void turns_free(turns **t); /* nobody may have or want the turn; NULL is fine */

/* Waits for the turn. */
void turns_take(turns *t, turn *mine);

/* Between two passes: lets another have the turn if it has had less, and waits for its own again.
 */
void turns_offer(turns *t, turn *mine);

/* Gives the turn away. */
void turns_leave(turns *t, turn *mine);

/* True if another wants the turn. */
bool turns_wanted(turns *t);

#endif
