/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the parts of code that are shown in colours: comments, texts, numbers and words of the
 * language. It reads each character once and knows no grammar. */

const LONGEST = 50000; /* longer code has no colours */
const C_COMMENTS = String.raw`\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)`;
const HASH_COMMENTS = "#[^\\n]*";
const TEXTS = String.raw`"(?:\\[^]|[^"\\\n])*"?|'(?:\\[^]|[^'\\\n])*'?`;

const C_WORDS = "auto bool break case char const continue default do double else enum extern false float for goto if inline int long NULL return short signed sizeof static " +
    "struct switch true typedef union unsigned void volatile while";
const LANGUAGES = {
    python: {comments: HASH_COMMENTS, texts: String.raw`"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|${TEXTS}`,
             words: "and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield"},
    javascript: {comments: C_COMMENTS, texts: `${TEXTS}|\`(?:\\\\[^]|[^\`\\\\])*\`?`,
                 words: "any as async await boolean break case catch class const continue default delete do else enum export extends false finally for from function if implements import in instanceof interface let new null number of private public readonly return static string super switch this throw true try type typeof undefined var void while yield"},
    c: {comments: C_COMMENTS, texts: TEXTS, directives: true,
        words: `${C_WORDS} catch class concept constexpr delete explicit friend namespace new noexcept nullptr operator override private protected public template this throw try typename using virtual`},
    java: {comments: C_COMMENTS, texts: TEXTS,
           words: "abstract async await bool boolean break byte case catch char class const continue default do double else enum extends false final finally float for foreach if implements import in instanceof int interface internal long namespace new null object out override package private protected public readonly record ref return sealed short static string super switch this throw throws true try using var virtual void while"},
    go: {comments: C_COMMENTS, texts: `${TEXTS}|\`[^\`]*\`?`,
         words: "bool break byte case chan const continue default defer else error fallthrough false float64 for func go goto if import int int64 interface map nil package range return rune select string struct switch true type uint var"},
    rust: {comments: C_COMMENTS, texts: String.raw`"(?:\\[^]|[^"\\])*"?|'(?:\\.|[^'\\\n])'`,
           words: "as async await bool break char const continue crate dyn else enum extern f32 f64 false fn for i32 i64 if impl in let loop match mod move mut pub ref return self Self static str String struct super trait true type u32 u64 u8 unsafe use usize where while Vec Option Some None Ok Err Result"},
    shell: {comments: String.raw`(?<![^\s;(])#[^\n]*`, texts: String.raw`"(?:\\[^]|[^"\\])*"?|'[^']*'?`,
            words: "case cd do done echo elif else esac exit export fi for function if in local read return set shift source sudo then unset while"},
    sql: {comments: String.raw`--[^\n]*|\/\*[^]*?(?:\*\/|$)`, texts: "'(?:''|[^'])*'?", anyCase: true,
          words: "add all alter and as asc avg begin between by case check column commit constraint count create cross date default delete desc distinct drop else end exists false foreign from full group having in index inner insert int integer into is join key left like limit max min not null numeric offset on or order outer primary references right rollback select set sum table text then true union unique update values varchar view when where with"},
    json: {comments: C_COMMENTS, texts: TEXTS, words: "true false null"},
    css: {comments: C_COMMENTS, texts: TEXTS, words: "important media import from to var calc"},
    html: {comments: "<!--[^]*?(?:-->|$)", texts: TEXTS, words: "", tags: true},
};
const OTHER_NAMES = {py: "python", python3: "python", js: "javascript", jsx: "javascript", mjs: "javascript", ts: "javascript", tsx: "javascript", typescript: "javascript",
                     "c++": "c", cpp: "c", cc: "c", h: "c", hpp: "c", cuda: "c", cs: "java", "c#": "java", csharp: "java", kotlin: "java", swift: "java", golang: "go", rs: "rust",
                     sh: "shell", bash: "shell", zsh: "shell", console: "shell", yaml: "shell", yml: "shell", toml: "shell", dockerfile: "shell", makefile: "shell",
                     jsonc: "json", xml: "html", svg: "html", scss: "css", postgresql: "sql", mysql: "sql", sqlite: "sql"};

const made = new Map();

/* Returns the pattern and the words of a language; undefined: it is not known. */
function rulesOf(name) {
    const language = LANGUAGES[OTHER_NAMES[name] ?? name];
    if (language === undefined || made.has(language))
        return made.get(language);
    const parts = [`(${language.comments})`, `(${language.texts})`, String.raw`((?<![\w.])\d[\w.]*)`,
                   language.directives ? String.raw`(^[ \t]*#[ \t]*\w+)` : language.tags ? String.raw`(<\/?[\w:-]+|\/?>)` : "(?!)()", String.raw`([A-Za-z_]\w*)`];
    const rules = {pattern: new RegExp(parts.join("|"), "gm"), words: new Set(language.words.split(" ")), anyCase: language.anyCase};
    made.set(language, rules);
    return rules;
}

const KINDS = ["note", "text", "number", "word"];

/* Returns the parts of a text in turn: [kind, text], where the kind is "" or one of KINDS. */
export function colour(text, language) {
    const rules = text.length <= LONGEST ? rulesOf(language.toLowerCase()) : undefined;
    if (rules === undefined)
        return [["", text]];
    const parts = [];
    let plain = 0;
    for (const found of text.matchAll(rules.pattern)) {
        const word = found[5] !== undefined && rules.words.has(rules.anyCase ? found[5].toLowerCase() : found[5]);
        const kind = word ? "word" : KINDS[found.slice(1, 5).findIndex((part) => part !== undefined)];
        if (kind === undefined)
            continue;
        if (found.index > plain)
            parts.push(["", text.slice(plain, found.index)]);
        parts.push([kind, found[0]]);
        plain = found.index + found[0].length;
    }
    if (plain < text.length)
        parts.push(["", text.slice(plain)]);
    return parts;
}
