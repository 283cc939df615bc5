# SPDX-License-Identifier: Apache-2.0
"""Small changes of a definition, such as one makes by mistake.

An edit is (first character, behind the last one, what stands there instead). Lines stay lines.
"""

import re

import tokens as cut

COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
ARITHMETIC = {"+": "-", "-": "+", "/": "*", "%": "/", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "+=": "-=",
              "-=": "+=", "|=": "&=", "&=": "|=", "<<=": ">>=", ">>=": "<<=", "++": "--"}  # fmt: skip
OPPOSITES = {"true": "false", "false": "true", "True": "False", "False": "True"}
KEYWORDS = {"if", "while", "for", "switch", "return", "sizeof", "else", "do", "case", "goto", "void", "const", "in",
            "not", "and", "or", "def", "lambda", "static", "struct", "enum", "_Alignas", "_Alignof", "offsetof",
            "defined", "alignof"}  # fmt: skip
EQUALITY = {"strcmp", "memcmp", "strncmp", "strcasecmp"}  # either order tells whether two are equal
NOT_CALLS = KEYWORDS | {"defined", "alignof"}
ENDS = {",", ";", ")", "]", "}", "?", ":"}
BEGINS = {",", ";", "(", "[", "{", "}", "?", ":"}


class Place:
    """The parts that an operator sees: the text of a file, a definition in it, its tokens."""

    def __init__(self, text, definition, found, enumerations):
        self.text, self.definition, self.tokens, self.after = text, definition, found, enumerations
        self.python = definition.kind == "python"

    def part(self, first, last):
        """The text from one token to another."""
        return self.text[self.tokens[first].start : self.tokens[last].end]

    def is_value(self, i):
        """Says whether an operator behind token i has a left side."""
        token = self.tokens[i] if i >= 0 else None
        if token is None or token.kind == "wall":
            return token is not None and token.text.startswith("{{")
        return token.text in (")", "]") if token.kind == "operator" else token.text not in KEYWORDS

    def kept_lines(self, start, end, text):
        return start, end, text + "\n" * (self.text.count("\n", start, end) - text.count("\n"))


def numbers(place):
    """(token, "(n" and ")" around it) of constants that are not part of a name."""
    for token in place.tokens:
        if token.kind == "number":
            yield token


def is_zero(token):
    return re.fullmatch(r"(0x)?0*(\.0*)?[uUlLfF]*", token.text) is not None


def off_by_one(place):
    for token in numbers(place):
        yield token.start, token.end, f"({token.text} + 1)"
        if not is_zero(token):
            yield token.start, token.end, f"({token.text} - 1)"


def times(place):
    for token in numbers(place):
        if not is_zero(token):
            yield token.start, token.end, f"({token.text} * 2)"
            yield token.start, token.end, f"({token.text} * 3)"


def _exchanged(place, table):
    for i, token in enumerate(place.tokens):
        if token.kind == "operator" and token.text in table and place.is_value(i - 1):
            yield i, (token.start, token.end, table[token.text])


def comparison(place):
    for _, edit in _exchanged(place, COMPARISONS):
        yield edit


def arithmetic(place):
    """Exchanges operators of arithmetic, but not the mark in `T *x` or `T &x`, nor a sign."""
    for i, edit in _exchanged(place, ARITHMETIC):
        yield edit


def negated(place):
    """Negates conditions of if and while; arms of ?: trade places."""
    for i, token in enumerate(place.tokens):
        if token.text in ("if", "while") and not place.python and token.kind == "word":
            end = cut.closing(place.tokens, i + 1) if i + 1 < len(place.tokens) else None
            if end:
                inner = place.text[place.tokens[i + 1].end : place.tokens[end].start]
                yield place.tokens[i + 1].end, place.tokens[end].start, f"!({inner})"
        if token.text in ("if", "elif", "while") and place.python:
            end = _python_colon(place, i)
            if end:
                inner = place.part(i + 1, end - 1)
                yield place.tokens[i + 1].start, place.tokens[end - 1].end, f"not ({inner})"
        if token.text == "?" and not place.python:
            yield from _arms(place, i)


def _python_colon(place, i):
    """The colon of the statement that begins with token i; None for a conditional expression."""
    before = place.text.rfind("\n", 0, place.tokens[i].start) + 1
    if place.text[before : place.tokens[i].start].strip():
        return None
    j = i + 1
    while j < len(place.tokens) and place.tokens[j].text != ":":
        inner = place.tokens[j].text in cut.OPEN and place.tokens[j].kind == "operator"
        j = (cut.closing(place.tokens, j) if inner else j) or len(place.tokens)
        j += 1
    return j if j < len(place.tokens) else None


def _side(place, i, step, ends):
    """Returns the last token of the operand beside token i, going by `step` until a token of `ends`."""
    depth, j = 0, i + step
    opening, closing = (cut.OPEN, cut.CLOSE) if step > 0 else (cut.CLOSE, cut.OPEN)
    while 0 <= j < len(place.tokens):
        token = place.tokens[j]
        if token.kind == "wall":
            return None
        if token.kind == "operator" or token.text in ends:
            if depth == 0 and (token.text in ends or token.text in closing):
                break
            depth += (token.text in opening) - (token.text in closing)
        j += step
    return j - step if 0 <= j < len(place.tokens) and j - step != i else None


def _arms(place, i):
    middle = _side(place, i, 1, {":", ";"})
    if middle is None or place.tokens[middle + 1].text != ":":
        return
    last = _side(place, middle + 1, 1, ENDS)
    if last:
        first, second = place.part(i + 1, middle), place.part(middle + 2, last)
        between = place.text[place.tokens[middle].end : place.tokens[middle + 2].start]
        yield place.tokens[i + 1].start, place.tokens[last].end, f"({second}){between}({first})"


def dropped_operand(place):
    """a && b becomes a, or b."""
    words = ("and", "or") if place.python else ("&&", "||")
    ends = {"&&", "||", "and", "or", "=", "return", "if", "else", "while", "elif"}
    for i, token in enumerate(place.tokens):
        if token.text in words:
            left, right = _side(place, i, -1, ends | BEGINS), _side(place, i, 1, ends | ENDS | {"{"})
            if right:
                yield place.kept_lines(place.tokens[i - 1].end, place.tokens[right].end, "")
            if left:
                yield place.kept_lines(place.tokens[left].start, place.tokens[i + 1].start, "")


def deleted(place):
    """Removes a call, an assignment, break or continue."""
    if place.python or place.definition.kind == "table":
        return
    tokens = place.tokens
    for i, token in enumerate(tokens):
        if token.kind != "word" and token.text != "*" or token.text in KEYWORDS - {"void"}:
            continue
        if i and tokens[i - 1].text not in (";", "{", "}", ")", ":", "else") and tokens[i - 1].kind != "wall":
            continue
        if i and tokens[i - 1].text == ")" and not _is_head(tokens, i - 1):
            continue
        last = _semicolon(tokens, i)
        if last and _is_statement(tokens, i, last):
            yield place.kept_lines(token.start, tokens[last].end, ";")


def _is_head(tokens, i):
    """True if the bracket at i ends `if (...)`, `for (...)` or `while (...)`."""
    depth = 0
    for j in range(i, -1, -1):
        depth += (tokens[j].text == ")") - (tokens[j].text == "(")
        if depth == 0:
            return j > 0 and tokens[j - 1].text in ("if", "for", "while")
    return False


def _semicolon(tokens, i):
    depth = 0
    for j in range(i, len(tokens)):
        if tokens[j].kind == "wall" and not tokens[j].text.startswith("{{"):
            return None
        if tokens[j].kind == "operator":
            depth += (tokens[j].text in cut.OPEN) - (tokens[j].text in cut.CLOSE)
        if depth < 0:
            return None
        if tokens[j].text == ";" and depth == 0:
            return j
    return None


def _is_statement(tokens, i, last):
    """Says whether it is a statement, not a declaration: a call, an assignment to an existing variable, a step, break
    or continue."""
    words = [token.text for token in tokens[i : last + 1]]
    if words[0] in ("break", "continue"):
        return True
    if words[-3:-1] in (["+", "+"], ["-", "-"]) or words[-2] in ("++", "--"):
        return True
    depth = 0
    for j, word in enumerate(words):
        if depth == 0 and re.fullmatch(r"[-+*/%&|^]?=|<<=|>>=", word):
            left = tokens[i : i + j]
            return not any(a.kind == b.kind == "word" for a, b in zip(left, left[1:])) and "*" not in words[1:j]
        depth += (word in cut.OPEN) - (word in cut.CLOSE)
    return len(words) > 3 and words[1] == "(" and words[0] != "void"


def early_return(place):
    """The neutral value of the type, at once."""
    if place.definition.kind != "function":
        return
    head = place.text[place.definition.start : place.definition.body]
    type_ = re.sub(r"\b(static|inline|extern|const)\b", "", head[: head.index("(")])
    type_ = re.sub(r"\w+\s*$", "", type_.strip()).strip()
    if type_.startswith(("{", "%")) or not type_:
        return
    value = "" if type_ == "void" else " NULL" if type_.endswith("*") else f" ({type_}){{0}}"
    yield place.definition.body, place.definition.body, f" return{value};"


def swapped(place):
    """Two arguments of a call that stand side by side; the compiler says whether their types agree."""
    for i, token in enumerate(place.tokens[:-1]):
        call = token.kind == "word" and token.text not in NOT_CALLS and place.tokens[i + 1].text == "("
        if not call or (i and place.tokens[i - 1].kind == "word" and place.tokens[i - 1].text not in KEYWORDS):
            continue
        arguments = _arguments(place, i + 1)
        if token.text in EQUALITY and _tells_equality(place, i):
            arguments = arguments[1:]
        for left, right in zip(arguments, arguments[1:]):
            a, b = place.part(*left), place.part(*right)
            if a != b:
                between = place.text[place.tokens[left[1]].end : place.tokens[right[0]].start]
                yield place.tokens[left[0]].start, place.tokens[right[1]].end, b + between + a


def _tells_equality(place, i):
    """True if the result of the call at token i is only compared with 0, or a truth value."""
    end = cut.closing(place.tokens, i + 1)
    after = place.tokens[end + 1].text if end and end + 1 < len(place.tokens) else ""
    return place.tokens[i - 1].text == "!" or after in ("==", "!=")


def _arguments(place, i):
    """First and last tokens of those of the call whose bracket is token i."""
    end = cut.closing(place.tokens, i)
    found, first, depth = [], i + 1, 0
    for j in range(i + 1, (end or i) + 1):
        token = place.tokens[j]
        if depth == 0 and (token.text == "," or j == end):
            if j > first:
                found.append((first, j - 1))
            first = j + 1
        elif token.kind == "operator":
            depth += (token.text in cut.OPEN) - (token.text in cut.CLOSE)
    return found


def parameters(place):
    """Names of the definition's parameters."""
    if place.definition.kind != "function":
        return set()
    head = place.text[place.definition.start : place.definition.body]
    return set(re.findall(r"(\w+)(?:\[[^\]]*\])?\s*[,)]", head[head.index("(") :])) - {"void"}


def ignored(place):
    """A use of a parameter becomes 0, which is NULL too."""
    names = parameters(place)
    for i, token in enumerate(place.tokens):
        if token.kind != "word" or token.text not in names or i + 1 >= len(place.tokens):
            continue
        before = place.tokens[i - 1].text if i else ""
        after = place.tokens[i + 1].text
        if after in ("->", ".", "[", "=", "(", "++", "--") or before in ("->", ".", "&", "*", "sizeof"):
            continue
        if re.fullmatch(r"[-+*/%&|^]=|<<=|>>=", after) or (i and place.tokens[i - 1].kind == "word" and before not in KEYWORDS):
            continue
        yield token.start, token.end, "0"


def member(place):
    """The next one of the same enumeration."""
    if place.definition.name == "enum":
        return
    for token in place.tokens:
        if token.kind == "word" and token.text in place.after:
            yield token.start, token.end, place.after[token.text]


def string(place):
    """A name, a key or a word loses its last letter; sentences, which only people read, stay."""
    for token in place.tokens:
        if token.kind == "string" and re.fullmatch(r'"[^\s%\\"]{2,}"', token.text):
            yield token.start, token.end, token.text[:-2] + '"'


def opposite(place):
    for token in place.tokens:
        if token.kind == "word" and token.text in OPPOSITES:
            yield token.start, token.end, OPPOSITES[token.text]


def removed_not(place):
    for i, token in enumerate(place.tokens):
        if token.text == "!" or (token.text == "not" and place.python and place.tokens[i + 1].text != "in"):
            yield token.start, token.end, " " if token.text == "not" else ""


def all_operators():
    return (off_by_one, times, comparison, arithmetic, negated, dropped_operand, deleted, early_return, swapped,
            ignored, member, string, opposite, removed_not)  # fmt: skip
