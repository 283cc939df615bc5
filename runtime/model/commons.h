/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_COMMONS_H
#define TERN_RUNTIME_MODEL_COMMONS_H

/*
 * Models that read equal matrices where one of them has them. A model that is opened beside another
 * one (tern_model_params.share) enters its commons, so any number of models can share.
 *
 * Holders. The first model with some bytes in some form holds them: in its arena, or in its file.
 * An entry of its list counts the models that read it there (tern_load_entry.readers). A reader
 * keeps a reference of a model only if it took something of it.
 *
 * Leaving. A model that is freed while others read its matrices gives everything back but those:
 * the pages of its other matrices at once, those of a shared one with its last reader. The list and
 * the map of the file go with the last reader of any.
 *
 * Looking. Whoever opens a model looks at what the others hold. Until it has entered or given up,
 * nothing that it saw is given back.
 *
 * Threads. Models may be opened beside each other and freed in any threads. One lock of the commons
 * protects its members and their counts; nothing is compared or freed with it held.
 */

#include "runtime/model/model.h"

typedef struct tern_commons_look {
    tern_commons *commons; /* NULL: there are no other models */
    tern_model **models;   /* [n] */
    size_t n;
    tern_equal_holder *holders; /* [n_holders] what they hold */
    size_t n_holders;
} tern_commons_look;

/*
 * Looks at the models of the commons of `beside` (NULL: none) that read ternary codes as `reading`
 * says, and whose files have not changed. End the look in any case: `done` gets the models that
 * nobody uses any more. TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_commons_look_at(tern_model *beside, const tern_reading *reading,
                                                 tern_commons_look *look, tern_error *err);
void tern_commons_look_end(tern_commons_look *look, void (*done)(tern_model *m));

/*
 * Enters a loaded model, which took of the look's holders what its list says. TERN_ERR_CHANGED: a
 * file that it would read has changed; TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_commons_enter(tern_model *m, const tern_commons_look *look,
                                               tern_error *err);

/* Its owner frees the model: nobody but the readers of its matrices uses it any more. Calls
 * `done` for it and for models that left before, when they have no readers. */
void tern_commons_leave(tern_model *m, void (*done)(tern_model *m));

/* TERN_ERR_CHANGED if a file has changed that a model reads matrices of another one in. */
TERN_MUST_CHECK tern_status tern_commons_unchanged(const tern_model *m, tern_error *err);

#endif
