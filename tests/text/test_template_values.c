/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions of chat templates: a few of each kind write what Jinja writes.
 * tests/templates compares many more with Jinja itself. */
#include <stdio.h>
#include <string.h>

#include "runtime/text/template/characters.h"
#include "runtime/text/template/template.h"
#include "tests/support/check.h"

typedef struct value_case {
    const char *expression, *text;
} value_case;

static const value_case cases[] = {
    /* texts within lists have quotes: single ones, unless only those are in it */
    {"['a']", "['a']"},
    {"['it\\'s']", "[\"it's\"]"},
    {"['say \"a\"']", "['say \"a\"']"},
    {"['\\'\"']", "['\\'\"']"},
    {"['a\\nb\\\\']", "['a\\nb\\\\']"},
    {"[1, 2.5, true, none]", "[1, 2.5, True, None]"},
    {"{'k': ['v', {}]}", "{'k': ['v', {}]}"},
    {"('a', 1)", "('a', 1)"},
    {"('a',)", "('a',)"},
    {"[]", "[]"},
    {"['a', {'b': none}] | tojson", "[\"a\", {\"b\": null}]"},
    {"'a\\nb\\n\\nc' | indent", "a\n    b\n\n    c"},
    {"'a\\nb' | indent(2, true)", "  a\n  b"},
    {"'a\\n\\nb' | indent(width='--', blank=true)", "a\n--\n--b"},
    {"'a' | indent", "a"},
    {"' a b ' | trim | upper", "A B"},
    {"'aBc' | capitalize ~ 'x' * 3", "Abcxxx"},
    {"[3, 1, 2] | sort | join('-')", "1-2-3"},
    {"'a-b-c'.split('-', 1)", "['a', 'b-c']"},
    {"'abcdef'[1:5:2] ~ 'abc'[::-1] ~ 'abc'[-1]", "bdcbac"},
    {"7 // 2 ~ ' ' ~ 7 % 4 ~ ' ' ~ -7 // 2 ~ ' ' ~ 7 / 2", "3 3 -4 3.5"},
    {"1 < 2 < 3 and not 2 < 1 or false", "True"},
    {"'a' in 'cat' and 'x' not in ['y']", "True"},
    {"'yes' if 0 else 'no'", "no"},
    {"missing | default('d') ~ ('' | default('e', true))", "de"},
    {"range(2, 9, 3) | list", "[2, 5, 8]"},
    {"'a' is string and 1 is number and [] is iterable and x is undefined", "True"},
    {"none is sameas none ~ ' ' ~ (true is sameas true) ~ (true is sameas false)",
     "True TrueFalse"},
    {"([1] is sameas [1]) ~ (none is sameas false)", "FalseFalse"},
    {"7 % -4 ~ ' ' ~ 7 // -2 ~ ' ' ~ -8 // 4 ~ ' ' ~ 7 % -1 ~ ' ' ~ 7 // -1", "-1 -4 -2 0 -7"},
    {"(9223372036854775806 + 1) ~ ' ' ~ (-9223372036854775807 - 1) % -1", "9223372036854775807 0"},
    /* filters, methods, parts, operators and tests at their boundaries: what Jinja 3.1.6 writes */
    {"'aXbX' | replace('X', '--')", "a--b--"},
    {"'aaa' | replace('a', 'b', 2)", "bba"},
    {"'aaa' | replace('a', 'b', 0)", "aaa"},
    {"'abc' | replace('', '.')", ".a.b.c."},
    {"'abc' | replace('', '.', 2)", ".a.bc"},
    {"'é!' | replace('', '.', 3)", ".é.!."},
    {"'aaaa'.replace('aa', 'b')", "bb"},
    {"'abab'.replace('ab', 'x', 1)", "xab"},
    {"'abab'.replace('', '-', 4)", "-a-b-a-b"},
    {"'abc'.replace('z', 'y')", "abc"},
    {"'xxaxx' | trim('x')", "a"},
    {"' a ' | trim(none) ~ '.'", "a."},
    {"'hello wORLD-x (y) [z] {w} <v' | title", "Hello World-X (Y) [Z] {W} <V"},
    {"\"they're BILL's\".title()", "They'Re Bill'S"},
    {"'hELLO wORLD' | capitalize", "Hello world"},
    {"'straßen' | lower", "straßen"},
    {"'a b' | upper | lower | title", "A B"},
    {"3 | string ~ none | string", "3None"},
    {"'12' | int + 1", "13"},
    {"' +12 ' | int", "12"},
    {"'1.9' | int", "1"},
    {"'-1.9' | int", "-1"},
    {"'z' | int(5)", "5"},
    {"'' | int(4)", "4"},
    {"'1e3' | int", "1000"},
    {"'1e18' | int(2)", "1000000000000000000"},
    {"3.7 | int ~ ' ' ~ -3.7 | int ~ ' ' ~ true | int", "3 -3 1"},
    {"none | int(6)", "6"},
    {"[] | int", "0"},
    {"'2.5' | float ~ ' ' ~ 'q' | float ~ ' ' ~ 'q' | float(1.5) ~ ' ' ~ 3 | float",
     "2.5 0.0 1.5 3.0"},
    {"true | float", "1.0"},
    {"'inf' | float > 1e300", "True"},
    {"-2 | abs ~ ' ' ~ -2.5 | abs ~ ' ' ~ 3 | abs ~ ' ' ~ true | abs", "2 2.5 3 1"},
    {"2.5 | round ~ ' ' ~ 3.5 | round ~ ' ' ~ 2.567 | round(2) ~ ' ' ~ -2.5 | round",
     "2.0 4.0 2.57 -2.0"},
    {"2.1 | round(method='ceil') ~ ' ' ~ 2.9 | round(0, 'floor') ~ ' ' ~ 2.123 | round(2, 'ceil')",
     "3.0 2.0 2.13"},
    {"3 | round ~ ' ' ~ 3 | round(1, 'common') ~ ' ' ~ 2.15 | round(1, 'floor')", "3 3 2.1"},
    {"1.5 | round(30)", "1.5"},
    {"x | d ~ '.' ~ x | default('q') ~ none | d('n') ~ none | d('n', true) ~ 0 | default('z', "
     "false)",
     ".qNonen0"},
    {"'' | length ~ 'ünï' | length ~ {'a': 1} | count ~ [1, 2] | length ~ (1,) | length ~ x | "
     "length",
     "031210"},
    {"x | items | list ~ {'a': 1, 'b': [2]} | items | list", "[][('a', 1), ('b', [2])]"},
    {"('<' | safe) + '<>&\"' ~ '|'", "<&lt;&gt;&amp;&#34;|"},
    {"('<' | safe) + \"it's\" + ('>' | safe)", "<it&#39;s>"},
    {"'<' + ('&' | safe)", "&lt;&"},
    {"'a' + 'b<'", "ab<"},
    {"{'b': 1, 'a': [1.5, true, false, none, 'é\\n\"\\\\']} | tojson",
     "{\"b\": 1, \"a\": [1.5, true, false, null, \"é\\n\\\"\\\\\"]}"},
    {"{'b': 1, 'a': 2} | tojson(sort_keys=true)", "{\"a\": 2, \"b\": 1}"},
    {"{'b': 1, 'a': [1, {}]} | tojson(indent=2)",
     "{\n  \"b\": 1,\n  \"a\": [\n    1,\n    {}\n  ]\n}"},
    {"[[], {}, [1]] | tojson(indent=1)", "[\n [],\n {},\n [\n  1\n ]\n]"},
    {"['é', '\\x7f', '\\u2028', '🙂', '\\x01'] | tojson(ensure_ascii=true)",
     "[\"\\u00e9\", \"\\u007f\", \"\\u2028\", \"\\ud83d\\ude42\", \"\\u0001\"]"},
    {"['\\t', '\\r', '\\x08', '\\x0c', '/'] | tojson",
     "[\"\\t\", \"\\r\", \"\\b\", \"\\f\", \"/\"]"},
    {"[1, 2] | tojson(separators=(',', ':'))", "[1,2]"},
    {"{'a': 1} | tojson(separators=(';', '='))", "{\"a\"=1}"},
    {"[1, 2] | tojson(indent=1, separators=(';', '='))", "[\n 1;\n 2\n]"},
    {"{1: 2, 'a': 3, none: 4, true: 5} | tojson", "{\"1\": 5, \"a\": 3, \"null\": 4}"},
    {"1e300 | tojson ~ ' ' ~ 0.1 | tojson ~ ' ' ~ 1e16 | tojson", "1e+300 0.1 1e+16"},
    {"[3, 1, 2] | sort(reverse=true)", "[3, 2, 1]"},
    {"['b', 'A', 'c', 'a', 'B'] | sort", "['A', 'a', 'b', 'B', 'c']"},
    {"['b', 'A', 'c', 'a', 'B'] | sort(reverse=true)", "['c', 'b', 'B', 'A', 'a']"},
    {"['b', 'A', 'c', 'a', 'B'] | sort(case_sensitive=true)", "['A', 'B', 'a', 'b', 'c']"},
    {"['b', 'A', 'c', 'a', 'B'] | unique | list", "['b', 'A', 'c']"},
    {"['b', 'A', 'c', 'a', 'B'] | unique(true) | join", "bAcaB"},
    {"['b', 'A', 'c', 'a', 'B'] | min ~ ['b', 'A', 'c', 'a', 'B'] | max", "Ac"},
    {"['b', 'A', 'a'] | min(true) ~ ['b', 'C', 'a'] | max(case_sensitive=true)", "Ab"},
    {"[{'n': 2}, {'n': 1}] | sort(attribute='n') | map(attribute='n') | join(',')", "1,2"},
    {"[{'n': 2}, {'n': 1}] | min(attribute='n') ~ [{'n': 2}, {'n': 3}] | max(attribute='n')",
     "{'n': 1}{'n': 3}"},
    {"[{'n': 2, 'm': 0}, {'n': 2, 'm': 1}] | max(attribute='n')", "{'n': 2, 'm': 0}"},
    {"[[1, 'a'], [0, 'b']] | sort(attribute=0) | map(attribute=1) | join", "ba"},
    {"[{'n': {'k': 4}}, {'n': {}}] | map(attribute='n.k', default=9) | list", "[4, 9]"},
    {"[{'n': [5, 6]}] | map(attribute='n.1') | list", "[6]"},
    {"[{'n': 1}, {'n': 2}] | sum(attribute='n') ~ [1, 2.5] | sum ~ [] | sum ~ [1] | sum(start=10)",
     "33.5011"},
    {"{'z': 1, 'Y': 2, 'x': 'a'} | dictsort", "[('x', 'a'), ('Y', 2), ('z', 1)]"},
    {"{'z': 1, 'Y': 2} | dictsort(true)", "[('Y', 2), ('z', 1)]"},
    {"{'z': 1, 'y': 0} | dictsort(by='value')", "[('y', 0), ('z', 1)]"},
    {"{'z': 1, 'y': 0} | dictsort(reverse=true)", "[('z', 1), ('y', 0)]"},
    {"'abc' | first ~ 'abc' | last ~ [1, 2] | first ~ [1, 2] | last ~ {'k': 1} | first", "ac12k"},
    {"'ünï' | reverse ~ [1, 2, 3] | reverse | list ~ 'abc' | list", "ïnü[3, 2, 1]['a', 'b', 'c']"},
    {"[] | first | d('none') ~ [] | last | d('none') ~ [] | min | d('none')", "nonenonenone"},
    {"['a', 'b'] | join ~ [1, none] | join('-') ~ [{'k': 1}, {'k': 2}] | join('+', 'k') ~ 'ab' | "
     "join('.')",
     "ab1-None1+2a.b"},
    {"[0, 1, '', 'a'] | select | list ~ [0, 1] | reject | list", "[1, 'a'][0]"},
    {"[1, 2, 3, 4] | select('odd') | list ~ [1, 2, 3] | reject('gt', 2) | list", "[1, 3][1, 2]"},
    {"[{'a': 1}, {'a': 3}] | selectattr('a', 'gt', 2) | list", "[{'a': 3}]"},
    {"[{'a': 1}, {'a': 0}, {}] | selectattr('a') | list ~ [{'a': 1}, {'a': 0}] | rejectattr('a') | "
     "list",
     "[{'a': 1}][{'a': 0}]"},
    {"[{'a': 1}, {}] | rejectattr('a', 'defined') | list", "[{}]"},
    {"[{'a': {'b': 1}}, {'a': {'b': 2}}] | selectattr('a.b', 'eq', 2) | list", "[{'a': {'b': 2}}]"},
    {"['a', 'b'] | map('upper') | list ~ ['a b'] | map('replace', ' ', '_') | list",
     "['A', 'B']['a_b']"},
    {"none | select | list ~ 0 | map('upper') | list", "[][]"},
    {"'%s(%s)%%' | format(1, 'é') ~ '%d-%r' | format(7, 'q')", "1(é)%7-'q'"},
    {"'%r %s' | format([1], 2.5) ~ 'a%%' | format", "[1] 2.5a%"},
    {"'<{}|{}>'.format(1, 'é') ~ '{1}{0}'.format('a', 'b') ~ '{n}{{}}'.format(n=[1])",
     "<1|é>ba[1]{}"},
    {"'{}{n}{}'.format(1, 2, n=3) ~ '{10}{2}'.format(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)", "132102"},
    {"'a'.format() ~ '}}{{'.format()", "a}{"},
    {"' x '.strip() ~ 'xxa'.lstrip('x') ~ 'axx'.rstrip('x') ~ 'xyaxy'.strip('yx')", "xaaa"},
    {"'.' ~ ' x '.lstrip() ~ '.' ~ ' x '.rstrip() ~ '.' ~ 'éaé'.strip('é')", ".x . x.a"},
    {"'\\u3000a\\u00a0\\t'.strip() ~ '.' ~ '   '.strip() ~ '.'", "a.."},
    {"'a,b,,c'.split(',') ~ 'abc'.split(',') ~ ''.split(',') ~ ','.split(',')",
     "['a', 'b', '', 'c']['abc']['']['', '']"},
    {"'a::b:c'.split('::') ~ 'a,b,c'.split(',', 1) ~ 'a,b,c'.split(',', 0)",
     "['a', 'b:c']['a', 'b,c']['a,b,c']"},
    {"' a  b '.split() ~ ''.split() ~ ' a  b c '.split(none, 1) ~ ' a  b '.split(none, 0)",
     "['a', 'b'][]['a', 'b c ']['a  b ']"},
    {"'a,b,c'.rsplit(',', 1) ~ 'a,b,c'.rsplit(',') ~ 'a::b'.rsplit('::') ~ 'abc'.rsplit(',') ~ "
     "',a'.rsplit(',')",
     "['a,b', 'c']['a', 'b', 'c']['a', 'b']['abc']['', 'a']"},
    {"' a  b  c '.rsplit() ~ ' a  b  c '.rsplit(none, 1) ~ ' a b '.rsplit(none, 0) ~ ''.rsplit()",
     "['a', 'b', 'c'][' a  b', 'c'][' a b'][]"},
    {"'a\\nb\\r\\nc\\rd'.splitlines() ~ 'a\\n\\nb\\n'.splitlines(true) ~ ''.splitlines() ~ "
     "'\\r\\n'.splitlines(true)",
     "['a', 'b', 'c', 'd']['a\\n', '\\n', 'b\\n'][]['\\r\\n']"},
    {"'a\\x0bb\\x1cc\\x85d\\u2028e\\x1ff'.splitlines()", "['a', 'b', 'c', 'd', 'e\\x1ff']"},
    {"'abc'.startswith('ab') ~ 'abc'.startswith('b') ~ 'abc'.startswith(('x', 'a')) ~ "
     "'a'.startswith('ab') ~ 'a'.startswith('')",
     "TrueFalseTrueFalseTrue"},
    {"'abc'.endswith('bc') ~ 'abc'.endswith('ab') ~ 'abc'.endswith(('x', 'c')) ~ "
     "'abc'.endswith(('x', 'y')) ~ 'abc'.endswith('abc')",
     "TrueFalseTrueFalseTrue"},
    {"'abc'.removeprefix('ab') ~ 'abc'.removesuffix('bc') ~ 'abc'.removeprefix('x') ~ "
     "'abc'.removesuffix('ab') ~ '.' ~ 'abc'.removesuffix('abc')",
     "caabcabc."},
    {"'abcabc'.find('c') ~ 'abcabc'.rfind('c') ~ 'abcabc'.find('z') ~ 'éab'.find('ab') ~ "
     "'a'.find('ab') ~ 'aab'.rfind('a')",
     "25-11-11"},
    {"'abc'.find('') ~ 'abc'.rfind('') ~ ''.find('') ~ 'abc'.find('abc') ~ 'abc'.rfind('abc') ~ "
     "'abc'.rfind('z')",
     "03000-1"},
    {"'aXaX'.count('aX') ~ 'aaa'.count('aa') ~ 'éa'.count('') ~ 'abc'.count('z') ~ ''.count('')",
     "21301"},
    {"'-'.join(['a', 'b', 'c']) ~ ''.join([]) ~ ', '.join('ab') ~ '.'.join({'k': 1})",
     "a-b-ca, bk"},
    {"[1, 2, 1].index(1) ~ [1, 2, 1].index(2) ~ [1, 2, 1].count(1) ~ [1].count(3) ~ (1, "
     "2).index(2)",
     "01201"},
    {"{'a': 1}.get('a') ~ {'a': 1}.get('b') ~ {'a': 1}.get('b', 2) ~ {'a': none}.get('a', 3)",
     "1None2None"},
    {"{'a': 1, 'b': 2}.keys() | list ~ {'a': 1, 'b': 2}.values() | list ~ {'a': 1}.items() | list "
     "~ {'a': 1}.copy()",
     "['a', 'b'][1, 2][('a', 1)]{'a': 1}"},
    {"[0, 1, 2, 3, 4][1:3] ~ [0, 1, 2, 3, 4][-2:] ~ [0, 1, 2, 3, 4][:-2] ~ [0, 1, 2, 3, 4][::2] ~ "
     "[0, 1, 2][5:]",
     "[1, 2][3, 4][0, 1, 2][0, 2, 4][]"},
    {"[0, 1, 2, 3, 4][::-1] ~ [0, 1, 2, 3, 4][5:1:-2] ~ [0, 1, 2][-9:2] ~ [0, 1, 2][:9] ~ [0, 1, "
     "2][2:1] ~ [0, 1, 2][-9::-1]",
     "[4, 3, 2, 1, 0][4, 2][0, 1][0, 1, 2][][]"},
    {"[0, 1, 2][1:-9:-1] ~ [0, 1, 2][0:3:3] ~ [0, 1, 2, 3][0:4:3] ~ (0, 1, 2)[1:] ~ [0, 1, "
     "2][3:-4:-1]",
     "[1, 0][0][0, 3](1, 2)[2, 1, 0]"},
    {"'ünïx'[0] ~ 'ünïx'[-1] ~ 'ünïx'[1:3] ~ 'ünïx'[::-1] ~ 'ünïx'[3:0:-2] ~ 'ünïx'[:0] ~ "
     "'abc'[true]",
     "üxnïxïnüxnb"},
    {"[1, 2, 3][-3] ~ [1, 2, 3][2] ~ [1, 2, 3][3] | d('out') ~ [1, 2, 3][-4] | d('out') ~ 'abc'[3] "
     "| d('out')",
     "13outoutout"},
    {"{'a': {'b': [5]}}.a.b.0 ~ {'a': {'b': [5]}}['a']['b'][0] ~ {1: 'i'}[1] ~ {'x y': 2}['x y']",
     "55i2"},
    {"[1 + 2 * 3 - 4 // 3 % 2, -7 % 3, 7 % -3, -7 // 2, 7.5 // 2, -7.5 % 2, 6 % 3, 6 // -3]",
     "[6, 2, -2, -4, 3.0, 0.5, 0, -2]"},
    {"2 * 'ab' ~ 'ab' * 2 ~ 'ab' * 0 ~ -1 * 'ab' ~ '' * 3", "abababab"},
    {"[1.5 + 1, 1.5 * 2, 1.5 - 1, 1 / 4, 0.1 + 0.2, true + 1, 3 - 5]",
     "[2.5, 3.0, 0.5, 0.25, 0.30000000000000004, 2, -2]"},
    {"1e3 ~ ' ' ~ 1_000 ~ ' ' ~ 1.0 ~ ' ' ~ 1e16 ~ ' ' ~ 1e-5 ~ ' ' ~ 0.0001 ~ ' ' ~ "
     "123456789012345680.0 ~ ' ' ~ -0.0",
     "1000.0 1000 1.0 1e+16 1e-05 0.0001 1.2345678901234568e+17 -0.0"},
    {"[[1] + [2], (1,) + (2, 3), [] + []]", "[[1, 2], (1, 2, 3), []]"},
    {"-3 ~ ' ' ~ +3 ~ ' ' ~ --3 ~ ' ' ~ -2.5 ~ ' ' ~ -true", "-3 3 3 -2.5 -1"},
    {"'a' 'b' ~ 1 ~ none ~ true ~ 1.5 ~ [] ~ {} ~ ()", "ab1NoneTrue1.5[]{}()"},
    {"1 == 1.0 ~ ' ' ~ (true == 1) ~ ' ' ~ (none == false) ~ ' ' ~ ([1, 2] == [1, 2]) ~ ' ' ~ ((1, "
     "2) == [1, 2]) ~ ' ' ~ ('a' == 'b')",
     "False"},
    {"({'a': 1} == {'a': 1}) ~ ({'a': 1} == {'a': 2}) ~ ({'a': 1} == {'b': 1}) ~ ({'a': 1} == "
     "{'a': 1, 'b': 2}) ~ ([1] == [1, 2]) ~ (1 != 2)",
     "TrueFalseFalseFalseFalseTrue"},
    {"(1 < 1) ~ (1 <= 1) ~ (1 > 1) ~ (1 >= 1) ~ (2 > 1) ~ (1 < 2) ~ (2 <= 1) ~ (1 >= 2)",
     "FalseTrueFalseTrueTrueTrueFalseFalse"},
    {"('a' < 'b') ~ ('a' < 'ab') ~ ('ab' < 'a') ~ ('b' > 'ab') ~ ('' < 'a') ~ ('a' <= 'a') ~ ('é' "
     "> 'z')",
     "TrueTrueFalseTrueTrueTrueTrue"},
    {"([1, 2] < [1, 3]) ~ ([1] < [1, 0]) ~ ([1, 0] > [1]) ~ ([2] < [1, 9]) ~ ((1, 2) <= (1, 2)) ~ "
     "(1.5 < 2) ~ (2 > 1.5)",
     "TrueTrueTrueFalseTrueTrueTrue"},
    {"(1 < 3 < 2) ~ (3 > 2 > 1) ~ (1 == 1 == 1) ~ (1 < 2 != 3) ~ ('a' in 'ab' in ['ab'])",
     "FalseTrueTrueTrueTrue"},
    {"('' in 'a') ~ ('ab' in 'a') ~ ('b' in {'b': 1}) ~ (1 in {'b': 1}) ~ (2 in (1, 2)) ~ (1 in x) "
     "~ ('c' not in 'abc') ~ (1 in [true])",
     "TrueFalseTrueFalseTrueFalseFalseTrue"},
    {"(not true or true and false) ~ (not none) ~ ([] or 'e') ~ (0 and 1) ~ ('a' and 'b') ~ (none "
     "or 0) ~ (not not 1)",
     "FalseTruee0b0True"},
    {"('x' if 2 > 1 else 'y') ~ ('x' if 0) ~ ('x' if '' else 'y' if 1 else 'z')", "xy"},
    {"(x is defined) ~ (x is undefined) ~ (none is none) ~ (x is none) ~ (1 is none) ~ (none is "
     "defined)",
     "FalseTrueTrueFalseFalseTrue"},
    {"(true is boolean) ~ (1 is boolean) ~ (true is true) ~ (false is true) ~ (1 is true) ~ (false "
     "is false) ~ (true is false) ~ (0 is false)",
     "TrueFalseTrueFalseFalseTrueFalseFalse"},
    {"(1 is integer) ~ (true is integer) ~ (1.0 is integer) ~ (1.0 is float) ~ (1 is float) ~ (1 "
     "is number) ~ (true is number) ~ ('1' is number)",
     "TrueFalseFalseTrueFalseTrueTrueFalse"},
    {"('a' is string) ~ (1 is string) ~ ({} is mapping) ~ ([] is mapping) ~ (range is callable) ~ "
     "(1 is callable) ~ ('a'.upper is callable)",
     "TrueFalseTrueFalseTrueFalseTrue"},
    {"('a' is sequence) ~ ({} is sequence) ~ ([] is sequence) ~ (1 is sequence) ~ (x is sequence) "
     "~ (none is sequence) ~ ((1,) is sequence)",
     "TrueTrueTrueFalseTrueFalseTrue"},
    {"('a' is iterable) ~ ({} is iterable) ~ (1 is iterable) ~ (x is iterable) ~ ([1] | "
     "map('string') is iterable) ~ (none is iterable)",
     "TrueTrueFalseTrueTrueFalse"},
    {"(1 is odd) ~ (2 is odd) ~ (2 is even) ~ (1 is even) ~ (9 is divisibleby 3) ~ (9 is "
     "divisibleby(2)) ~ (-1 is odd) ~ (0 is even)",
     "TrueFalseTrueFalseTrueFalseTrueTrue"},
    {"(1 is eq 1) ~ (1 is equalto 2) ~ (1 is ne 1) ~ (1 is ne 2) ~ (1 is lt 2) ~ (1 is lessthan 1) "
     "~ (1 is le 1) ~ (2 is le 1)",
     "TrueFalseFalseTrueTrueFalseTrueFalse"},
    {"(2 is gt 1) ~ (1 is greaterthan 1) ~ (1 is ge 1) ~ (1 is ge 2) ~ (1 is in [1]) ~ (2 is in "
     "[1]) ~ (1 is not in [1]) ~ (1 is not odd)",
     "TrueFalseTrueFalseTrueFalseFalseFalse"},
    {"(true is sameas true) ~ (1 is sameas none) ~ ([] is sameas []) ~ ({} is sameas none)",
     "TrueFalseFalseFalse"},
    {"range(3) | list ~ range(1, 3) | list ~ range(0, 7, 3) | list ~ range(3, 0, -1) | list ~ "
     "range(3, 3) | list ~ range(0, 6, 3) | list ~ range(5, 0, -2) | list",
     "[0, 1, 2][1, 2][0, 3, 6][3, 2, 1][][0, 3][5, 3, 1]"},
    {"dict(a=1, b='x') ~ dict({'a': 1}, b=2) ~ dict() ~ namespace(a=1).a ~ namespace({'b': 2}).b",
     "{'a': 1, 'b': 'x'}{'a': 1, 'b': 2}{}12"},
    {"'\\x41\\u00e9\\U0001F642\\'\\\"\\\\\\t|\\a\\b\\f\\v\\0' | tojson",
     "\"Aé🙂'\\\"\\\\\\t|\\u0007\\b\\f\\u000b\\u0000\""},
    {"'a\\\nb' ~ '\\101' ~ 'a\\qb'", "abAa\\qb"},
    {"['a', \"b'\", \"c\\\"'\", 1.0, 1e20, x is defined]",
     "['a', \"b'\", 'c\"\\'', 1.0, 1e+20, False]"},
    {"{'a': {'b': (1,)}, 1: none, none: true}", "{'a': {'b': (1,)}, 1: None, None: True}"},
    {"1 if 1 else 2, 3", "(1, 3)"},
    {"'a\\nb\\n\\nc' | indent(1, true, true)", " a\n b\n \n c"},
    {"'a\\n' | indent(2) ~ '.'", "a\n."},
    {"'\\n' | indent(2, blank=true) ~ '.'", "\n  ."},
    {"'a\\n\\nb' | indent(2, blank=false)", "a\n\n  b"},
    {"'a\\r\\nb' | indent(1)", "a\n b"},
    {"(1, 2) | list ~ [(1, 'a')] | map('first') | list ~ [[1, 2]] | map('last') | list",
     "[1, 2][1][2]"},
    {"\"{{ '{{' }}\" | length", "10"},
    {"[[1, 2], [3]] | map('length') | sum ~ [[1], [2]] | sum(start=[])", "3[1, 2]"},
    {"strftime_now('%Y') | length", "4"},
};

/* Characters above ASCII have kinds and cases where utf8proc is there. */
static const value_case letters[] = {
    {"'éa bC'.capitalize() ~ 'ÉA' | lower", "Éa bcéa"},
    {"'12'.isdigit() ~ '1a'.isdigit() ~ ''.isdigit() ~ 'ab'.isalpha() ~ 'ab1'.isalpha() ~ "
     "'éß'.isalpha() ~ ' \\t'.isspace() ~ ' a'.isspace()",
     "TrueFalseFalseTrueFalseTrueTrueFalse"},
    {"('AB' is upper) ~ ('Ab' is upper) ~ ('12' is upper) ~ ('ab' is lower) ~ ('aB' is lower) ~ "
     "('É' is upper) ~ ('é1' is lower) ~ ('' is lower)",
     "TrueFalseFalseTrueFalseTrueTrueFalse"},
    {"['\\x00\\x1f\\x7f\\u200b\\u00e9\\u00a0🙂', '\\t\\r']",
     "['\\x00\\x1f\\x7f\\u200bé\\xa0🙂', '\\t\\r']"},
    {"'abc'.upper() ~ 'ABC'.lower() ~ 'ab cd'.title() ~ 'éA'.upper()", "ABCabcAb CdÉA"},
};

/* Expressions that have no value, and what is said of them. */
static const struct {
    const char *expression, *says;
} refused[] = {
    {"7 // 0", "division by zero"},
    {"7 % 0", "division by zero"},
    {"7 / 0", "division by zero"},
    {"7.5 % 0", "division by zero"},
    {"9223372036854775807 + 1", "a number has more than 64 bits"},
    {"-9223372036854775807 - 2", "a number has more than 64 bits"},
    {"4294967296 * 4294967296", "a number has more than 64 bits"},
    {"(-9223372036854775807 - 1) // -1", "a number has more than 64 bits"},
    {"1 < 'a'", "int and str have no order"},
    {"'a' - 1", "no '-' of str and int"},
    {"[1] + 2", "no '+' of list and int"},
    {"x < 1", "'x' is undefined"},
    {"x + 1", "'x' is undefined"},
    {"'a' | nothing", "nothing"},
    {"'a' is nothing", "nothing"},
    {"x.y.z", "undefined"},
    {"'a' | replace('a')", "the filter 'replace' wants two texts"},
    {"'a' | trim(3)", "the filter 'trim' wants a text"},
    {"'a' | indent([])", "the filter 'indent' wants an integer"},
    {"'a' | int(0, 16)", "the filter 'int' supports base 10 only"},
    {"'a' | abs", "the filter 'abs' wants a number"},
    {"2.5 | round(-1)", "the filter 'round' of these is not supported"},
    {"2.5 | round(31)", "the filter 'round' of these is not supported"},
    {"2.5 | round(0, 'up')", "the filter 'round' of these is not supported"},
    {"'a' | round", "the filter 'round' of these is not supported"},
    {"2.5 | round('a')", "the filter 'round' wants an integer"},
    {"5 | length", "a int has no length"},
    {"[1] | map('string') | length", "a generator has no length"},
    {"5 | items", "the filter 'items' wants a dict, not a int"},
    {"[1] | tojson(separators=(1, 2))", "'separators' are two texts"},
    {"[1] | tojson(separators=(',',))", "'separators' are two texts"},
    {"[1] | map('string') | tojson", "a generator cannot be written as JSON"},
    {"range | tojson", "a function cannot be written as JSON"},
    {"{'a': 1} | tojson(nope=1)", "'tojson' has an argument that is not known: nope"},
    {"[1] | map('string') | last", "a generator has no last element"},
    {"5 | first", "a int cannot be gone through"},
    {"5 | list", "a int cannot be gone through"},
    {"[1, 'a'] | sort", "int and str have no order"},
    {"[1, 'a'] | min", "str and int have no order"},
    {"[1] | dictsort", "the filter 'dictsort' wants a dict"},
    {"[1] | map", "'map' wants a filter or an attribute"},
    {"[1] | map(1)", "'map' wants a filter or an attribute"},
    {"[1] | map(nope=1)", "'map' has an argument that is not known: nope"},
    {"[1] | select(1)", "'select' and 'reject' want the name of a test"},
    {"[1] | selectattr", "'select' and 'reject' want an attribute and the name of a test"},
    {"[1] | selectattr('a', 1)", "'select' and 'reject' want an attribute and the name of a test"},
    {"[1] | select('nothing')", "the test 'nothing' is not supported"},
    {"[1] | map(attribute=1.5) | list", "an attribute is a text or a place"},
    {"'a'.strip(1)", "'strip' wants a text"},
    {"'a'.lstrip(1)", "'lstrip' wants a text"},
    {"'a'.rstrip(1)", "'rstrip' wants a text"},
    {"'a'.split('')", "'split' by an empty text"},
    {"'a'.split(1)", "'split' wants a text"},
    {"'a'.split('a', 'b')", "'split' wants an integer"},
    {"'a'.startswith(1)", "'startswith' wants a text"},
    {"'a'.startswith(('a', 1))", "'startswith' wants a text"},
    {"'a'.startswith(['a'])", "'startswith' wants a text"},
    {"'a'.endswith()", "'endswith' wants a text"},
    {"'a'.removeprefix(1)", "'removeprefix' wants a text"},
    {"'a'.removesuffix()", "'removesuffix' wants a text"},
    {"'a'.replace('a')", "'replace' wants a text"},
    {"'a'.replace(1, 'a')", "'replace' wants a text"},
    {"'a'.replace('a', 'b', 'c')", "'replace' wants an integer"},
    {"'a'.find(1)", "'find' wants a text"},
    {"'a'.count()", "'count' wants a text"},
    {"'a'.join([1])", "'join' wants a text"},
    {"'a'.join()", "'join' wants a text"},
    {"'a'.upper(1)", "'letters' has 1 arguments, at most 0 are known"},
    {"'1'.isdigit(1)", "'isdigit' has 1 arguments, at most 0 are known"},
    {"{}.get()", "'get' wants a text"},
    {"{}.keys(1)", "'keys' has 1 arguments, at most 0 are known"},
    {"[1].index(2)", "'index': the list has no such value"},
    {"[1].index()", "'index': the list has no such value"},
    {"'{}'.format()", "'format' has no value for the field '{}'"},
    {"'{'.format(1)", "'format' of a text with a lone brace"},
    {"'}'.format(1)", "'format' of a text with a lone brace"},
    {"'{0}{}'.format(1, 2)", "'format' has no value for the field '{}'"},
    {"'{n}'.format(1)", "'format' has no value for the field '{n}'"},
    {"'{a{b}'.format(1)", "'format' of a text with a lone brace"},
    {"'%s' | format()", "the filter 'format' wants %s, %d or %r, and a value for each"},
    {"'a' | format(1)", "the filter 'format' has more values than fields"},
    {"'%d' | format('x')", "the filter 'format' wants %s, %d or %r, and a value for each"},
    {"'%' | format(1)", "the filter 'format' wants %s, %d or %r, and a value for each"},
    {"[1][::0]", "the step of a part is 0"},
    {"[1]['a':]", "the bound of a part is a str"},
    {"'abc'[::0]", "the step of a part is 0"},
    {"x[0]", "'x' is undefined"},
    {"x[1:]", "'x' is undefined"},
    {"x.a", "'x' is undefined"},
    {"{}.a.b", "'dict has no a' is undefined"},
    {"5[0].a", "'int has no such element' is undefined"},
    {"5[1:].a", "'int has no parts' is undefined"},
    {"1 is divisibleby", "the test 'divisibleby' wants a value"},
    {"1 is eq", "the test 'eq' wants a value"},
    {"1 is odd(2)", "'odd' has 1 arguments, at most 0 are known"},
    {"'a' is odd", "no '%' of str and int"},
    {"1 is lt 'a'", "int and str have no order"},
    {"1 is in 5", "a int cannot be gone through"},
    {"1 in 'a'", "'in' a text wants a text, not a int"},
    {"range()", "'range' of these numbers is not supported"},
    {"range('a')", "'range' of these numbers is not supported"},
    {"range(1, 2, 0)", "'range' of these numbers is not supported"},
    {"range(1, 'a')", "'range' of these numbers is not supported"},
    {"range(9999999999)", "'range' of these numbers is not supported"},
    {"range(1, 2, 3, 4)", "'range' has 4 arguments, at most 3 are known"},
    {"dict(1)", "'dict' and 'namespace' want names"},
    {"namespace({}, {})", "'dict' and 'namespace' want names"},
    {"{[1]: 2}", "a list is not a key"},
    {"{{}: 2}", "a dict is not a key"},
    {"strftime_now()", "'strftime_now' wants a format, a short text"},
    {"strftime_now(1)", "'strftime_now' wants a format, a short text"},
    {"1()", "a int cannot be called"},
    {"'a'.nothing()", "'str has no nothing' is undefined and cannot be called"},
    {"[].append(1)", "the method 'append' of a list is not supported"},
    {"-'a'", "a str has no sign"},
    {"+[]", "a list has no sign"},
    {"[1] + (1,)", "no '+' of list and tuple"},
    {"[1] + 1", "no '+' of list and int"},
    {"{} + {}", "no '+' of dict and dict"},
    {"'a' * 1.5", "no '*' of str and float"},
    {"none * 2", "no '*' of NoneType and int"},
    {"[1] < 1", "list and int have no order"},
    {"(1,) < [1]", "tuple and list have no order"},
    {"{} < {}", "dict and dict have no order"},
    {"none < 1", "NoneType and int have no order"},
    {"1 > none", "int and NoneType have no order"},
    {"x > 1", "'x' is undefined"},
    {"x ~ y.z", "'y' is undefined"},
    {"1 // 0.0", "division by zero"},
};

/* Runs a template that writes the expression between < and >. */
static tern_status run(const char *expression, tern_marked_text *out, tern_error *err) {
    char text[400];
    const tern_conversation nothing = {.n = 0};
    const tern_template_input input = {.conversation = &nothing};
    (void)snprintf(text, sizeof text, "<{{ %s }}>", expression);
    return tern_template_run((tern_span){text, strlen(text)}, &input, out, err);
}

static void check_value(const value_case *c) {
    char wanted[400];
    tern_marked_text out = {0};
    tern_error err = {0};
    if (run(c->expression, &out, &err) != TERN_OK)
        fail_msg("%s: %s", c->expression, err.message);
    (void)snprintf(wanted, sizeof wanted, "<%s>", c->text);
    if (out.size != strlen(wanted) || memcmp(out.bytes, wanted, out.size) != 0)
        fail_msg("%s\nis %.*s\nnot %s", c->expression, (int)out.size, out.bytes, wanted);
    tern_marked_free(&out);
}

static void test_values(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_value(&cases[i]);
}

/* A message without a text has none, or an empty one where the template wants one. */
static void test_silence(void **state) {
    static const char *const texts[][2] = {
        {"{{ messages[0].content is defined }}", "False"},
        {"{{ messages[0].content.split('x') | length }}", "1"},
    };
    const tern_chat_message call = {.role = "assistant", .tool_calls = "[]"};
    const tern_conversation talk = {.messages = &call, .n = 1};
    const tern_template_input input = {.conversation = &talk};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tern_marked_text out = {0};
        tern_error err = {0};
        const tern_span source = {texts[i][0], strlen(texts[i][0])};
        if (tern_template_run(source, &input, &out, &err) != TERN_OK)
            fail_msg("%s: %s", texts[i][0], err.message);
        assert_int_equal(out.size, strlen(texts[i][1]));
        assert_memory_equal(out.bytes, texts[i][1], out.size);
        tern_marked_free(&out);
    }
}

/* The shortest outputs: nothing, and one byte. */
static void test_short_outputs(void **state) {
    (void)state;
    const tern_conversation nothing = {.n = 0};
    const tern_template_input input = {.conversation = &nothing};
    for (size_t n = 0; n < 3; n++) {
        tern_marked_text out = {0};
        tern_error err = {0};
        assert_int_equal(tern_template_run((tern_span){"ab", n}, &input, &out, &err), TERN_OK);
        assert_int_equal(out.size, n);
        assert_true(n == 0 || memcmp(out.bytes, "ab", n) == 0);
        tern_marked_free(&out);
    }
}

static void test_letters(void **state) {
    (void)state;
    if (!tern_tpl_is_upper(0xC9))
        check_skip("built without utf8proc");
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        check_value(&letters[i]);
}

static void test_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        tern_marked_text out = {0};
        tern_error err = {0};
        assert_int_equal(run(refused[i].expression, &out, &err), TERN_ERR_TEMPLATE);
        if (strstr(err.message, refused[i].says) == NULL)
            fail_msg("%s: %s", refused[i].expression, err.message);
        tern_marked_free(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_silence),
        cmocka_unit_test(test_short_outputs), cmocka_unit_test(test_letters),
        cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
