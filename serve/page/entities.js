/* SPDX-License-Identifier: Apache-2.0 */
/* References to characters, such as &lt; and &#960;. The names are those of HTML 4. */

const LATIN = "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para middot " +
    "cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute " +
    "Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde " +
    "auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave " +
    "uacute ucirc uuml yacute thorn yuml";
const GREEK = "Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho . Sigma Tau Upsilon Phi Chi Psi Omega " +
    ". . . . . . . alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigmaf sigma tau upsilon phi chi psi omega";
const OTHERS = "lt < gt > amp & quot \" apos ' ensp \u2002 emsp \u2003 thinsp \u2009 zwnj \u200c zwj \u200d lrm \u200e rlm \u200f ndash – mdash — " +
    "lsquo ‘ rsquo ’ sbquo ‚ ldquo “ rdquo ” bdquo „ dagger † Dagger ‡ bull • hellip … permil ‰ prime ′ Prime ″ lsaquo ‹ rsaquo › oline ‾ frasl ⁄ " +
    "euro € image ℑ weierp ℘ real ℜ trade ™ alefsym ℵ larr ← uarr ↑ rarr → darr ↓ harr ↔ crarr ↵ lArr ⇐ uArr ⇑ rArr ⇒ dArr ⇓ hArr ⇔ forall ∀ " +
    "part ∂ exist ∃ empty ∅ nabla ∇ isin ∈ notin ∉ ni ∋ prod ∏ sum ∑ minus − lowast ∗ radic √ prop ∝ infin ∞ ang ∠ and ∧ or ∨ cap ∩ cup ∪ int ∫ " +
    "there4 ∴ sim ∼ cong ≅ asymp ≈ ne ≠ equiv ≡ le ≤ ge ≥ sub ⊂ sup ⊃ nsub ⊄ sube ⊆ supe ⊇ oplus ⊕ otimes ⊗ perp ⊥ sdot ⋅ lceil ⌈ rceil ⌉ " +
    "lfloor ⌊ rfloor ⌋ lang ⟨ rang ⟩ loz ◊ spades ♠ clubs ♣ hearts ♥ diams ♦ OElig Œ oelig œ Scaron Š scaron š Yuml Ÿ fnof ƒ circ ˆ tilde ˜ " +
    "thetasym ϑ upsih ϒ piv ϖ";

const NAMES = new Map();
LATIN.split(" ").forEach((name, i) => NAMES.set(name, String.fromCharCode(160 + i)));
GREEK.split(" ").forEach((name, i) => name !== "." && NAMES.set(name, String.fromCharCode(0x391 + i)));
for (const [, name, c] of OTHERS.matchAll(/(\w+) ([^ ])/g))
    NAMES.set(name, c);

const REFERENCE = /&(?:#(?:[xX]([0-9a-fA-F]{1,6})|(\d{1,7}))|(\w{2,12}));/y;

/* Reads a reference at a place: [character, length]; null: there is none. */
export function readReference(text, at) {
    REFERENCE.lastIndex = at;
    const found = REFERENCE.exec(text);
    if (found === null || (found[3] !== undefined && !NAMES.has(found[3])))
        return null;
    if (found[3] !== undefined)
        return [NAMES.get(found[3]), found[0].length];
    const code = found[1] !== undefined ? parseInt(found[1], 16) : parseInt(found[2], 10);
    const sound = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    return [sound ? String.fromCodePoint(code) : "\ufffd", found[0].length];
}

/* Replaces all references of a text. */
export function withoutReferences(text) {
    return text.includes("&") ? text.replace(/&[#\w]{2,12};/g, (found) => readReference(found, 0)?.[0] ?? found) : text;
}
