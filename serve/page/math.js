/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses a formula in the notation of TeX into a tree of MathML: [name, attributes, ...children],
 * where a child is a node or a text. A command that is not known is shown as text. Work grows with
 * the length of the formula; groups that are nested too deeply, and formulas that are too long,
 * give null.
 */

const DEEPEST = 60;
export const LONGEST_FORMULA = 8000;

const table = (text) => new Map(text.trim().split(/\s+/).map((pair) => [pair.slice(0, pair.indexOf(":")), pair.slice(pair.indexOf(":") + 1)]));

const LETTERS = table(`alpha:α beta:β gamma:γ delta:δ epsilon:ϵ varepsilon:ε zeta:ζ eta:η theta:θ vartheta:ϑ iota:ι kappa:κ lambda:λ mu:μ
nu:ν xi:ξ omicron:ο pi:π varpi:ϖ rho:ρ varrho:ϱ sigma:σ varsigma:ς tau:τ upsilon:υ phi:ϕ varphi:φ chi:χ psi:ψ omega:ω Gamma:Γ Delta:Δ Theta:Θ
Lambda:Λ Xi:Ξ Pi:Π Sigma:Σ Upsilon:Υ Phi:Φ Psi:Ψ Omega:Ω ell:ℓ hbar:ℏ imath:ı jmath:ȷ Re:ℜ Im:ℑ aleph:ℵ wp:℘ partial:∂ nabla:∇ infty:∞
emptyset:∅ varnothing:∅ angle:∠ triangle:△ square:□ top:⊤ degree:° hslash:ℏ Box:□`);

const OPERATORS = table(`times:× cdot:⋅ div:÷ pm:± mp:∓ ast:∗ star:⋆ circ:∘ bullet:∙ oplus:⊕ ominus:⊖ otimes:⊗ odot:⊙ cap:∩ cup:∪ setminus:∖
land:∧ wedge:∧ lor:∨ vee:∨ lnot:¬ neg:¬ forall:∀ exists:∃ nexists:∄ le:≤ leq:≤ leqslant:⩽ ge:≥ geq:≥ geqslant:⩾ ne:≠ neq:≠ ll:≪ gg:≫ equiv:≡ approx:≈ cong:≅
sim:∼ simeq:≃ propto:∝ doteq:≐ prec:≺ succ:≻ in:∈ notin:∉ ni:∋ subset:⊂ supset:⊃ subseteq:⊆ supseteq:⊇ subsetneq:⊊ mid:∣ nmid:∤ parallel:∥ perp:⊥ bot:⊥
vdash:⊢ models:⊨ to:→ rightarrow:→ gets:← leftarrow:← leftrightarrow:↔ Rightarrow:⇒ implies:⟹ Longrightarrow:⟹ Leftarrow:⇐ impliedby:⟸ Leftrightarrow:⇔
iff:⟺ Longleftrightarrow:⟺ longrightarrow:⟶ longleftarrow:⟵ mapsto:↦ longmapsto:⟼ hookrightarrow:↪ uparrow:↑ downarrow:↓ rightharpoonup:⇀ rightleftharpoons:⇌
ldots:… dots:… dotsc:… cdots:⋯ dotsb:⋯ vdots:⋮ ddots:⋱ prime:′ colon:: therefore:∴ because:∵ dagger:† backslash:\\ lt:< gt:> coloneqq:≔ vert:| Vert:‖
lvert:| rvert:| lVert:‖ rVert:‖ langle:⟨ rangle:⟩ lfloor:⌊ rfloor:⌋ lceil:⌈ rceil:⌉ lbrace:{ rbrace:} lbrack:[ rbrack:] slash:/`);

const LARGE = table("sum:∑ prod:∏ coprod:∐ bigcup:⋃ bigcap:⋂ bigoplus:⨁ bigotimes:⨂ bigvee:⋁ bigwedge:⋀ bigsqcup:⨆");
const INTEGRALS = table("int:∫ iint:∬ iiint:∭ oint:∮");
const FUNCTIONS = new Set("sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh coth log ln lg exp deg dim hom ker arg".split(" "));
const UNDER = new Set("lim max min sup inf limsup liminf det gcd lcm Pr argmax argmin".split(" "));
const ACCENTS = table("hat:^ widehat:^ bar:¯ overline:¯ vec:→ overrightarrow:→ dot:˙ ddot:¨ tilde:~ widetilde:~ check:ˇ acute:´ grave:` breve:˘ mathring:˚ overbrace:⏞");
const WIDE = new Set("widehat overline overrightarrow widetilde overbrace underbrace underline".split(" "));
const BELOW = table("underline:_ underbrace:⏟");
const SPACES = table(",:.17em ::.22em >:.22em ;:.28em quad:1em qquad:2em enspace:.5em thinspace:.17em");
const TEXTS = new Set("text textrm textbf textit textsf texttt mbox hbox textnormal".split(" "));
const IGNORED = new Set("displaystyle textstyle scriptstyle limits nolimits label nonumber notag left right hline middle big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr ! allowbreak rm it bf".split(" "));
const FENCES = {pmatrix: "()", bmatrix: "[]", Bmatrix: "{}", vmatrix: "||", Vmatrix: "‖‖", cases: "{ ", rcases: " }"};
const ENVIRONMENTS = new Set("matrix smallmatrix array aligned align align* alignedat alignat alignat* gathered gather gather* split equation equation* eqnarray eqnarray* multline multline* substack".split(" "));

/* First code points of capitals, small letters and digits, and letters that stand elsewhere. */
const ALPHABETS = {
    mathbb: [0x1d538, 0x1d552, 0x1d7d8, table("C:ℂ H:ℍ N:ℕ P:ℙ Q:ℚ R:ℝ Z:ℤ")],
    mathcal: [0x1d49c, 0x1d4b6, 0, table("B:ℬ E:ℰ F:ℱ H:ℋ I:ℐ L:ℒ M:ℳ R:ℛ e:ℯ g:ℊ o:ℴ")],
    mathfrak: [0x1d504, 0x1d51e, 0, table("C:ℭ H:ℌ I:ℑ R:ℜ Z:ℨ")],
    mathbf: [0x1d400, 0x1d41a, 0x1d7ce, new Map()],
    boldsymbol: [0x1d468, 0x1d482, 0x1d7ce, new Map()],
    mathsf: [0x1d5a0, 0x1d5ba, 0x1d7e2, new Map()],
    mathtt: [0x1d670, 0x1d68a, 0x1d7f6, new Map()],
};
const SAME = {mathscr: "mathcal", bm: "boldsymbol", Bbb: "mathbb", frak: "mathfrak"};

/* Returns a letter in another alphabet. */
function styled(c, style) {
    const alphabet = ALPHABETS[style];
    if (alphabet === undefined)
        return c;
    const [capital, small, digit, others] = alphabet;
    if (others.has(c))
        return others.get(c);
    const code = c.codePointAt(0);
    const first = code >= 65 && code <= 90 ? capital - 65 : code >= 97 && code <= 122 ? small - 97 : code >= 48 && code <= 57 && digit > 0 ? digit - 48 : 0;
    if (style === "boldsymbol" && code >= 0x3b1 && code <= 0x3c9)
        return String.fromCodePoint(0x1d736 + code - 0x3b1);
    return first > 0 ? String.fromCodePoint(first + code) : c;
}

const TOKEN = /\\(?:[a-zA-Z]+\*?|[^])|\d+(?:[.,]\d+)*|\s+|[^]/uy;

function tokensOf(text) {
    const tokens = [];
    TOKEN.lastIndex = 0;
    for (let found; TOKEN.lastIndex < text.length && (found = TOKEN.exec(text)) !== null;)
        tokens.push(found[0].endsWith("*") && found[0].length > 2 && found[0][0] === "\\" && found[0] !== "\\operatorname*" ? found[0].slice(0, -1) : found[0]);
    return tokens;
}

const row = (nodes) => (nodes.length === 1 ? nodes[0] : ["mrow", {}, ...nodes]);
const sign = (text, attributes = {}) => ["mo", attributes, text];
/* A sign that no number or bracket's end precedes belongs to what follows it, and stands close to it. */
function withSigns(nodes) {
    nodes.forEach((node, i) => {
        const before = nodes[i - 1];
        const free = before === undefined || (before[0] === "mo" && !")]}|‖⟩⌋⌉′!".includes(before[2]));
        if (free && node[0] === "mo" && "−+±".includes(node[2]))
            node[1] = {form: "prefix", lspace: "0", rspace: "0"};
    });
    return nodes;
}

const fence = (text) => (text === "" || text === "." || text === " " ? null : sign(text, {stretchy: "true", fence: "true"}));

class Parser {
    constructor(text) {
        this.tokens = tokensOf(text);
        this.at = 0;
        this.depth = 0;
        this.style = "";
    }

    skip() {
        while (/^\s/.test(this.tokens[this.at] ?? ""))
            this.at++;
    }

    peek() {
        this.skip();
        return this.tokens[this.at];
    }

    next() {
        this.skip();
        return this.tokens[this.at++];
    }

    /* Reads nodes up to one of the tokens `ends`, which stays. */
    nodes(ends) {
        const out = [];
        if (++this.depth > DEEPEST)
            throw new RangeError("nested too deeply");
        for (let token = this.peek(); token !== undefined && !ends.includes(token); token = this.peek())
            out.push(...this.scripted());
        this.depth--;
        return withSigns(out);
    }

    /* An argument: a group in braces, or one token. */
    argument() {
        const token = this.peek();
        if (token === undefined || ["}", "&", "\\\\", "\\right", "\\middle", "\\end"].includes(token))
            return ["mrow", {}];
        if (++this.depth > DEEPEST)
            throw new RangeError("nested too deeply");
        if (/^\d./.test(token)) { /* one digit, as in TeX */
            this.depth--;
            this.tokens[this.at] = token.slice(1);
            return ["mn", {}, styled(token[0], this.style)];
        }
        const node = token === "{" ? row(this.group("}")) : row(this.atom());
        this.depth--;
        return node;
    }

    group(end) {
        this.at++;
        const nodes = this.nodes([end]);
        this.at++;
        return nodes.length > 0 ? nodes : [["mrow", {}]];
    }

    /* The text of an argument, as it was written. */
    words() {
        if (this.peek() !== "{")
            return this.next() ?? "";
        let text = "", deep = 0;
        for (this.at++; this.at < this.tokens.length; this.at++) {
            const token = this.tokens[this.at];
            deep += token === "{" ? 1 : token === "}" ? -1 : 0;
            if (deep < 0)
                break;
            text += token === "{" || token === "}" ? "" : /^\\[^a-zA-Z]/.test(token) ? token.slice(1) : token;
        }
        this.at++;
        return text;
    }

    /* An atom with its sub- and superscripts. */
    scripted() {
        const token = this.peek();
        const nodes = token === "^" || token === "_" || token === "'" ? [["mrow", {}]] : this.atom();
        let base = nodes.pop(), below = null, above = null, limits = base?.limits;
        const primes = [];
        for (let mark = this.peek(); base !== undefined; mark = this.peek()) {
            if (mark === "\\limits" || mark === "\\nolimits") {
                limits = mark === "\\limits";
                this.at++;
            } else if (mark === "'") {
                primes.push(sign("′"));
                this.at++;
            } else if (mark === "^" && above === null) {
                this.at++;
                above = this.argument();
            } else if (mark === "_" && below === null) {
                this.at++;
                below = this.argument();
            } else {
                break;
            }
        }
        if (primes.length > 0)
            above = row(above === null ? primes : [...primes, above]);
        return base === undefined ? nodes : [...nodes, this.attach(base, below, above, limits)];
    }

    attach(base, below, above, limits) {
        if (below === null && above === null)
            return base;
        const kinds = limits ? ["munder", "mover", "munderover"] : ["msub", "msup", "msubsup"];
        return [below !== null && above !== null ? kinds[2] : below !== null ? kinds[0] : kinds[1], {},
                ...[base, below, above].filter((node) => node !== null)];
    }

    atom() {
        const token = this.next();
        if (token === "{")
            return (this.at--, [row(this.group("}"))]);
        if (token[0] === "\\" && token.length > 1)
            return this.command(token.slice(1));
        if (/^\d/.test(token))
            return [["mn", {}, [...token].map((c) => styled(c, this.style)).join("")]];
        if (/^\p{L}/u.test(token))
            return [["mi", this.style === "mathrm" ? {mathvariant: "normal"} : {}, styled(token, this.style)]];
        if (token === "~")
            return [["mspace", {width: ".33em"}]];
        if (token === "}" || token === "&")
            return [];
        return [sign(token === "-" ? "−" : token === "*" ? "∗" : token, "()[]|/".includes(token) ? {stretchy: "false"} : {})];
    }

    command(name) {
        if (LETTERS.has(name))
            return [["mi", /^\p{Lu}/u.test(LETTERS.get(name)) ? {mathvariant: "normal"} : {}, styled(LETTERS.get(name), this.style)]];
        if (OPERATORS.has(name))
            return [sign(OPERATORS.get(name), "|‖⟨⟩⌊⌋⌈⌉{}[]/".includes(OPERATORS.get(name)) ? {stretchy: "false"} : {})];
        if (LARGE.has(name))
            return [Object.assign(sign(LARGE.get(name)), {limits: true})];
        if (INTEGRALS.has(name))
            return [sign(INTEGRALS.get(name))];
        if (FUNCTIONS.has(name))
            return [["mi", {}, name], ["mspace", {width: ".17em"}]].slice(0, "([{^_".includes(this.peek() ?? "(") ? 1 : 2);
        if (UNDER.has(name))
            return [Object.assign(sign(name, {movablelimits: "true", form: "prefix", rspace: ".17em"}), {limits: true})];
        if (SPACES.has(name))
            return [["mspace", {width: SPACES.get(name)}]];
        if (ACCENTS.has(name))
            return [this.accent("mover", ACCENTS.get(name), WIDE.has(name), name === "overbrace")];
        if (BELOW.has(name))
            return [this.accent("munder", BELOW.get(name), true, name === "underbrace")];
        if (TEXTS.has(name))
            return [["mtext", name === "textbf" ? {class: "strong"} : {}, this.words().replace(/\s/g, "\u00a0")]];
        if (name in ALPHABETS || name in SAME || name === "mathrm" || name === "mathit")
            return this.alphabet(SAME[name] ?? name);
        if (/^[^a-zA-Z]$/.test(name))
            return this.symbol(name);
        return this.structure(name);
    }

    symbol(name) {
        if (name === "\\")
            return [["mspace", {linebreak: "newline"}]];
        if (/\s/.test(name))
            return [["mspace", {width: ".33em"}]];
        return name === "!" ? [] : [sign(name === "|" ? "‖" : name, {stretchy: "false"})];
    }

    alphabet(style) {
        const before = this.style;
        this.style = style;
        const node = style === "mathrm" && this.peek() === "{" ? ["mi", {mathvariant: "normal"}, this.words()] : this.argument();
        this.style = before;
        return [node];
    }

    accent(kind, mark, wide, limits) {
        const base = this.argument();
        const node = [kind, kind === "mover" ? {accent: "true"} : {accentunder: "true"}, base, sign(mark, {stretchy: String(wide)})];
        return limits ? Object.assign(node, {limits: true}) : node;
    }

    structure(name) {
        switch (name) {
        case "frac": case "dfrac": case "tfrac": case "cfrac": {
            const above = this.argument();
            return [["mfrac", {}, above, this.argument()]];
        }
        case "binom": case "dbinom": case "tbinom": {
            const above = this.argument();
            return [row([fence("("), ["mfrac", {linethickness: "0"}, above, this.argument()], fence(")")])];
        }
        case "sqrt":
            return [this.root()];
        case "left":
            return [this.fenced()];
        case "begin":
            return [this.environment(this.words())];
        case "substack":
            this.peek() === "{" && this.at++;
            return [this.grid("substack", ["}"])];
        case "operatorname": case "operatorname*":
            return [Object.assign(sign(this.words(), {movablelimits: "true", form: "prefix", rspace: ".17em"}), {limits: name.endsWith("*")})];
        case "overset": case "stackrel": {
            const above = this.argument();
            return [["mover", {}, this.argument(), above]];
        }
        case "underset": {
            const below = this.argument();
            return [["munder", {}, this.argument(), below]];
        }
        case "xrightarrow": case "xleftarrow":
            return [["mover", {}, sign(name === "xrightarrow" ? "→" : "←", {stretchy: "true"}), ["mpadded", {lspace: ".5em", width: "+1em"}, this.argument()]]];
        case "not": {
            const [node] = this.atom();
            const text = typeof node?.[2] === "string" ? node[2] : "";
            return [text === "=" ? sign("≠") : text === "∈" ? sign("∉") : sign(`${text}\u0338`)];
        }
        case "boxed": case "fbox":
            return [["mrow", {class: "boxed"}, this.argument()]];
        case "phantom":
            return [["mphantom", {}, this.argument()]];
        case "pmod":
            return [row([["mspace", {width: ".5em"}], sign("("), ["mi", {}, "mod"], ["mspace", {width: ".3em"}], this.argument(), sign(")")])];
        case "bmod": case "mod":
            return [sign("mod", {lspace: ".28em", rspace: ".28em"})];
        case "tag":
            return [["mspace", {width: "2em"}], ["mtext", {}, `(${this.words()})`]];
        case "label":
            return (this.words(), []);
        default:
            return IGNORED.has(name) ? [] : [["mtext", {class: "unknown"}, `\\${name}`]];
        }
    }

    root() {
        if (this.peek() !== "[")
            return ["msqrt", {}, this.argument()];
        this.at++;
        const degree = row(this.nodes(["]"]));
        this.at++;
        return ["mroot", {}, this.argument(), degree];
    }

    delimiter() {
        const token = this.next() ?? ".";
        return token[0] === "\\" ? OPERATORS.get(token.slice(1)) ?? (token === "\\|" ? "‖" : token.slice(1)) : token;
    }

    fenced() {
        const open = fence(this.delimiter()), parts = [];
        for (;;) {
            parts.push(...this.nodes(["\\right", "\\middle", "}", "\\end"]));
            if (this.peek() !== "\\middle")
                break;
            this.at++;
            parts.push(fence(this.delimiter()));
        }
        let close = null;
        if (this.peek() === "\\right") {
            this.at++;
            close = fence(this.delimiter());
        }
        return ["mrow", {}, ...[open, ...parts, close].filter((node) => node !== null)];
    }

    /* Rows of cells up to one of the tokens `ends`, which is taken. */
    grid(name, ends) {
        const rows = [[]];
        while (this.peek() !== undefined && !ends.includes(this.peek())) {
            rows.at(-1).push(["mtd", {}, ...this.nodes(["&", "\\\\", "\\cr", ...ends])]);
            const mark = ends.includes(this.peek()) ? undefined : this.next();
            if (mark === "\\\\" || mark === "\\cr")
                rows.push([]);
        }
        this.at++;
        const kept = rows.filter((cells) => cells.length > 0);
        const kind = name.startsWith("align") || name === "split" || name.startsWith("eqnarray") ? "aligned" : name.endsWith("cases") ? "cases" : "grid";
        return ["mtable", {class: kind, displaystyle: kind === "aligned" ? "true" : null}, ...kept.map((cells) => ["mtr", {}, ...cells])];
    }

    environment(name) {
        if (!(name in FENCES) && !ENVIRONMENTS.has(name) && !ENVIRONMENTS.has(`${name}*`))
            return ["mtext", {class: "unknown"}, `\\begin{${name}}`];
        if (name === "array" || name.startsWith("alignat") || name === "alignedat")
            this.words();
        const cells = this.grid(name, ["\\end"]);
        this.words();
        const [open, close] = [...(FENCES[name] ?? "  ")].map(fence);
        return ["mrow", {}, ...[open, cells, close].filter((node) => node !== null)];
    }
}

/* Returns the tree of a formula; null if it is too long or nested too deeply. */
export function parseFormula(text) {
    if (text.length > LONGEST_FORMULA)
        return null;
    try {
        const parser = new Parser(text);
        const cells = /\\\\/.test(text) && !text.includes("\\begin") ? parser.grid("aligned", []) : null;
        const nodes = [];
        while (cells === null && parser.peek() !== undefined) /* a bracket too many is left out */
            nodes.push(...parser.scripted());
        return ["mrow", {}, ...(cells === null ? withSigns(nodes) : [cells])];
    } catch (e) {
        if (e instanceof RangeError)
            return null;
        throw e;
    }
}
