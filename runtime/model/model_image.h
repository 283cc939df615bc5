/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_MODEL_IMAGE_H
#define TERN_RUNTIME_MODEL_MODEL_IMAGE_H

/*
 * Images of a model's weights (image.h) while it is opened: finds one, or sees to it that one is
 * written. Nothing here fails: without an image the weights are packed, and
 * tern_model_loading.problem says what went wrong.
 */

#include "runtime/model/model.h"

/*
 * Call after planning and before memory is reserved. Maps the image for the pieces of m->list, if
 * caching is wanted and there is one. Then m->weights is an arena over it, and m->loading.mapped is
 * set.
 */
void tern_model_find_image(tern_model *m, const tern_model_params *params, tern_team *team);

/* Call after everything has been loaded. Starts to write the image in the background, if it is
 * wanted and none was found. The thread runs when the processors have nothing else to do. */
void tern_model_keep_image(tern_model *m);

/* Waits for an image that is being written, and ends all work on images. */
void tern_model_end_image(tern_model *m);

/* Then frees the weights and closes the image. */
void tern_model_release_weights(tern_model *m);

#endif
