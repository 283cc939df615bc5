/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_MODEL_IMAGE_H
#define TERN_RUNTIME_MODEL_MODEL_IMAGE_H

/*
 * What a model that is being opened has to do with images of its weights (image.h): finds one, or
 * sees to it that there will be one. Nothing here fails: without an image weights are packed, and
 * what went wrong is told in tern_model_loading.problem.
 */

#include "runtime/model/model.h"

/*
 * After planning, and before memory is taken: maps the image for the pieces of m->list, if caching
 * is wanted and there is one. Then m->weights is an arena over it, and m->loading.mapped is set.
 */
void tern_model_find_image(tern_model *m, const tern_model_params *params, tern_team *team);

/*
 * After everything has been loaded: begins to write the image in the background, if it is wanted
 * and was not there. The thread runs when the processors have nothing else to do.
 */
void tern_model_keep_image(tern_model *m);

/* Waits until the image is written, if one is being written, and lets go of images and weights. */
void tern_model_release_weights(tern_model *m);

#endif
