/* SPDX-License-Identifier: Apache-2.0 */
/* Before anything is drawn: light or dark as it was chosen here, or else as the system says. */
"use strict";
(() => {
    let theme = null;
    try {
        theme = localStorage.getItem("tern.theme");
    } catch {
        /* the browser keeps nothing for this page */
    }
    if (theme === "light" || theme === "dark")
        document.documentElement.dataset.theme = theme;
})();
