/* SPDX-License-Identifier: Apache-2.0 */
/* tern pull: a model from the Hugging Face Hub. */

#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/hub/short_names.h"
#include "tools/pull/fetch.h"

int cmd_pull(const options *o) {
    hub_name name;
    short_name known;
    if (short_name_find(o->operands[0], &known) && known.hub.repo[0] != '\0')
        return fetch_model(o, &known.hub);
    if (!hub_name_read(o->operands[0], &name)) {
        complain("pull wants a short name (tern list --names), OWNER/NAME, OWNER/NAME:FILE, "
                 "OWNER/NAME@REVISION:FILE or an address of the "
                 "Hub, not '%.100s'",
                 o->operands[0]);
        return EXIT_USAGE;
    }
    return fetch_model(o, &name);
}
