/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses light or dark before anything is drawn: the user's choice, or else the system's. */
"use strict";
(() => {
    let theme = null;
    try {
        theme = localStorage.getItem("tern.theme");
    } catch {
        /* the browser stores nothing for this page */
    }
    if (theme === "light" || theme === "dark")
        document.documentElement.dataset.theme = theme;
})();
