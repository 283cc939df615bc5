#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""First inputs of fuzz_template: tests/fuzz/seeds_template.py FOLDER. They are the templates, statements and
expressions of tests/templates, and below what those do not have: they reach nearly all that a long run reaches."""

import ast
import json
import random
import sys
from pathlib import Path

NO_CONTENT, ALL_ELSE = 8, 4 + 16 + 32 + 64  # of the first byte
STEPS, MEMORY, OUTPUT = 1, 2, 3  # which limit
CALLS = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"n": [1, 2.5, null, true, "x"]}'}}]

# Expressions, one a line.
RARE = r"""
1.5 // 0.5 ~ 7 % 0.0
-5 // 2 ~ -5 % 2 ~ 5 // -2 ~ 4 // -1 ~ 4 % -1
9223372036854775807 + 1
-9223372036854775807 - 2
9223372036854775807 * 2
(-9223372036854775807 - 1) // -1
-(-9223372036854775807 - 1)
(-9223372036854775807 - 1)|abs
99999999999999999999
[1.0 - 2, 1.0 + 2, 1.0 * 2, 1.0 / 4, -1.5, +1.5, +1, +true, 7.5 // 2, 7.5 % 2, 7.5 % -2, 5 * 1.5, True, False, None]
1 // 0
1 / 0
1 % 0
-'a'
+[]
1e400 ~ -1e400 ~ (1e400 - 1e400) ~ 1e16 ~ 1e-5 ~ 1.25e-7 ~ 0.001 ~ 123.456 ~ 1e22 ~ -0.0
[1e400, -1e400, 1e400 - 1e400]|tojson
[0.0 and 1, 0.5 and 1, -0.5 and 1, (1e400 - 1e400) and 1]
('', 'a', [], {}, {'k': 1}, range, none, 0)|select|list|length
[true < 2, 1.5 < 2, 2 > 1.5, 1 <= 1, 1.0 >= 2, 'a' <= 'ab', 'b' > 'a', '' < 'a', [1] < [2], [1] < [1, 2], (1,) >= (1,), [] < []]
[1] < (1,)
'a' < none
{} < {}
zz < 1
1 < zz
[1 == 1.0, 1.0 == 1, 1.5 == 1.5, 1.5 != 2, 2.5 == 1, 'a' == 'b', 'a' == 'bc', [1] == [2], [1] == [1, 2], {'a': 1} == {'a': 1}, {'a': 1} == {'a': 2}, {'a': 1} == {'b': 1}, {} == {'a': 1}, none == none, zz == yy, m == m, range == range, range == dict]
['a' in 'ba', '' in '', 1 in (2, 1), 'k' in {'k': 1}, 'z' in {'k': 1}, 1 in zz, 3 in (1, 2)]
1 in 'a'
1 in 5
1 not in 5
{[1]: 1}
{{}: 1}
{1: zz.y}
{zz.y: 1}
[zz.y]
{none: 1, true: 2, 1.5: 3, (1): 4}|tojson
{2: 'b', 1: 'a', 3: 'c'}|tojson(sort_keys=true)
{'a': 1, 1: 2}|tojson(sort_keys=true)
{range: 1}|tojson
{'a': range}|tojson
[range]|tojson(indent=1)
[1, 2]|tojson(separators=1)
[1, 2]|tojson(separators=(1, ','))
[1, 2]|tojson(separators=(',', 1))
[1, 2]|tojson(separators=(',',))
[1, 2]|tojson(separators=none) ~ [1]|tojson(indent=none)
[1, {'a': [2]}]|tojson(separators=(' , ', ' : '), indent=3)
[1, [2, {}], {'a': {}}]|tojson(indent='--')
1|tojson(indent=[])
'\u0001\u007f\u0085 \u00e9 \u20ac \U0001f642 \b\f\n\r\t"\\\x00'|tojson
'\u0001\u007f \u00e9 \u20ac \U0001f642\x00'|tojson(ensure_ascii=true)
['\u0001\u007f\u0085\u00a0\u00ad\u0378\u2028\u2029\ue000\u200b\U000e0001\U0001f642\x00\'"', "a'b", 'a"b', 'a\\\n']
[1, 2]|reverse|tojson
range|tojson
zz|tojson
[zz]|string ~ [none, true, false, 1.5, (1, 2), (), {1: {}, 2: 3}, 'x']|string
([1, 2]|reverse)|string
[range]|string
{1: range}|string
{range: 1}|string
[(1, 2) + (3,), [1] + [2], 'a' * 3, 3 * 'a', 'a' * 0, '' * 9, 'a' * -1, 'a' + 'b', true + 1]
[1] + (2,)
[1] + ([2]|reverse)
([1]|reverse) + [2]
'a' * 1.5
[1] * 2
none * 'a'
'a' - 'b'
1 + zz
zz()
5()
zz['a']
zz[1:]
zz[zz.y]
5[1:]
5.a ~ none.b ~ 5['a'] ~ none[0] ~ [1]['a'] ~ [1][5] ~ [1][-5] ~ 'a'['b'] ~ {'a': 1}[2] ~ 'abc'[true] ~ [4, 5][true] ~ 'abc'[9] ~ 'abc'[-9]
5.aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee ~ zz.y
[1, 2]['count'](1) ~ {'a': 1}['get']('a') ~ 'abc'['upper']() ~ [1].0
([1]|reverse)[0] ~ ([1]|reverse)[1:] ~ ([1]|reverse).count
'abc'[1.5:]
'abc'['a':]
'abc'[zz.y:]
zz.y[1:]
'abcdef'[-9:9] ~ 'abcdef'[9:-9:-1] ~ 'abcdef'[4:1:-2] ~ 'a\u00e9c'[::-1] ~ 'a\u00e9c'[1:2] ~ [1, 2, 3][-9:9:2] ~ [1, 2, 3][true:none] ~ 'abc'[2:1] ~ 'abc'[:9:2]
'abc'[::0]
[1][::9223372036854775807]
[1][::-9223372036854775807]
[1][none:'a']
''[0:] ~ ''|first ~ []|last ~ []|min ~ []|max ~ [] | sum ~ ()|join
5|first
5|last
5|list
5|reverse
5|join
5|sum
5|sort
5|unique|list
5|min
5|map('upper')|list
5|select|list
5|length
none|length
range|length
[1]|reverse|length
[1]|reverse|last
zz|length ~ 'ab'|length ~ {}|length ~ zz|list ~ zz|items|list
5|items
[[1, 2], [3]]|join('-', attribute=0)
[range]|join
[1, 2]|join(range)
[zz]|join('a', 'b')
[{'a': {'b': [1, 2]}}]|map(attribute='a.b.1')|list
[{'a': 1}]|map(attribute='a.')|list
[{'a': 1}]|map(attribute=none)|list
[{'a': 1}]|map(attribute=1.5)|list
[{'a': 1}]|map(attribute='z', default='q')|list
[{'a': 1}]|map(attribute='z.y')|list
[[7, 8]]|map(attribute='1')|list ~ [[7, 8]]|map(attribute=1)|list ~ [[7, 8]]|map(attribute='0000000001')|list
['a']|map|list
['a']|map(1)|list
['a']|map(default=1)|list
['a']|map(attribute='a', z=1)|list
['a']|map('replace', 'a', 'b')|list ~ ['a']|map('default', 'x')|list
['a']|map('nothing')|list
zz|map('upper')|list
[1, 2]|select('nothing')|list
[1, 2]|select(1)|list
[1, 2]|select(a=1)|list
[1, 2]|selectattr|list
[1, 2]|selectattr('a', 1)|list
[1, 2]|selectattr('a.b')|list
[1, 2]|select('divisibleby', 0)|list
[{'a': 1}, {'a': 0}, {}]|selectattr('a')|list ~ [{'a': 1}, {}]|rejectattr('a')|list ~ [{'a': 1}, {'a': 3}]|selectattr('a', 'ge', 2)|list
[3, 1, 2]|sort ~ ['b', 'A', 'a']|sort ~ ['b', 'A', 'a']|sort(case_sensitive=true) ~ [3, 1, 2]|sort(true) ~ [{'n': 2}, {'n': 1}]|sort(attribute='n') ~ [1.5, 1, true]|sort
[1, 'a']|sort
[1, 'a']|max
[{'n': 1}, {}]|sort(attribute='z')
[1]|sort(attribute='z.y')
[1]|unique(attribute='z.y')|list
[1]|min(attribute='z.y')
[1]|sum('z.y')
{'b': 1, 'A': 2}|dictsort ~ {'b': 1, 'A': 2}|dictsort(true) ~ {'b': 1, 'A': 2}|dictsort(by='value') ~ {'b': 1, 'A': 2}|dictsort(reverse=true) ~ {'b': 1, 'A': 2}|dictsort(by='key')
{'b': 1, 1: 2}|dictsort
5|dictsort
['a', 'A', 1, 1.0, 'b']|unique|list ~ ['a', 'A']|unique(true)|list ~ [{'n': 1}, {'n': 1}]|unique(attribute='n')|list
['b', 'A']|min ~ ['b', 'A']|min(true) ~ [{'n': 2}, {'n': 1}]|max(attribute='n') ~ [1, 3, 2]|min
[1, 2.5]|sum ~ [{'a': 1}]|sum('a', 10) ~ ['a']|sum(start='b')
['a']|sum
5|trim ~ ' x'|trim(none) ~ 'xax'|trim('x') ~ '\u00e9a\u00e9'|trim('\u00e9b') ~ 'a'|trim('\u00e9')
'a'|trim(5)
range|trim
range|upper
range|string
range|safe
range|indent
'a'|replace
'a'|replace('a')
'aXa'|replace('a', 5, none) ~ 'aXa'|replace('a', 'b', true) ~ 5|replace(5, 6) ~ 'ab'|replace('', '-', 1) ~ 'ab'|replace('', '-', 0) ~ 'ab'|replace('', '-', 2)
'a'|replace('a', 'b', 'c')
'a'|replace(range, 'b')
'a'|replace('a', range)
range|replace('a', 'b')
'a'|indent(none) ~ 'a\nb'|indent(true) ~ 'a\r\nb\x0bc'|indent(1, true, true) ~ 5|indent ~ ''|indent ~ 'a\n\nb'|indent(2, false, true)
'a'|indent([])
'a'|indent(99999)
[' 12 '|int, '12.7'|int, '1e3'|int, '1e30'|int, '99999999999999999999'|int(5), '0x1'|int, 'p'|int, ''|int, '+ 1'|int, '+1'|int, '- 1'|int, none|int, true|int, 2.9|int, 1e30|int, (1e400 - 1e400)|int, [1]|int(3), 'inf'|int, '1_0'|int, '1'|int(0, 10), '1\x002'|int, '\x1f1'|int]
'1'|int(0, 16)
'1'|int(0, none)
[' 1.5 '|float, 'x'|float, 'x'|float(2), 5|float, true|float, none|float, [1]|float(0.5), '1111111111111111111111111111111111111111111111111111111111111111111'|float]
[-1.5|abs, -1|abs, true|abs]
'a'|abs
[1.55|round(1), 1.5|round(0, 'ceil'), 1.5|round(0, 'floor'), 1.5|round(method='common'), 3|round, true|round, 2.5|round(none), 2|round(1, 'ceil')]
1.5|round(-1)
1.5|round(31)
1.5|round(1, 'x')
1.5|round(1, 5)
1.5|round('a')
'a'|round
[zz|default, zz|default(1), 0|default(1), 0|default(1, true), 1|default(2, true), ''|d('x', 1)]
['ab cd-ef (gh'|title, 'AB'|lower, 'ab'|upper, 'aB'|capitalize, '\u01c6a \u00df\u2003b\x00c'|title, 5|upper, none|title, ''|capitalize]
['\u01c6a'.title(), "it's 1a".title(), 'a\u00e9'.upper(), ''.lower()]
'a'.upper(1)
'a'|upper(1)
'a'|nothing
'a'|aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee
1 is aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee
'a'|trim(1, 2)
'a'|trim(z=1)
'a'|trim(zz.y)
'a'.strip(1)
'a'.lstrip(1)
'a'.rstrip(1)
'a'.strip(1, 2)
'a'.lstrip(1, 2)
'a'.rstrip(1, 2)
'a'.strip(zz.y)
[' a '.strip(none), ' a '.lstrip(), ' a '.rstrip(), 'xa'.strip('xy'), ''.strip(), 'xay'.strip(chars='xy')]
['a,b,c'.split(','), 'a,b,c'.split(',', 1), 'a,b,c'.split(',', 0), 'a,b,c'.rsplit(','), 'a,b,c'.rsplit(',', 1), 'abc'.rsplit('abcd'), ''.split(), ''.split(','), ' a b '.split(none, 1), ' a b c '.rsplit(none, 1), ' a b '.rsplit(), 'a\u3000b'.split(), 'ab'.split(maxsplit=1), 'a,b,c,d,e,f,g,h,i,j,k,l'.split(',')]
'a\u0085b\u00a0c\u1680d\u2000e\u2028f\u2029g\u202fh\u205fi\u3000j\x1ck l\u200b'.split()
'a'.split('')
'a'.split(1)
'a'.split(',', 'x')
'a'.split(z=1)
['a\nb\rc\r\nd\x0be\x1cf\u2028g\u0085\u2029h\x1f'.splitlines(), 'a\nb\r\n\r'.splitlines(true), ''.splitlines(), 'a\rb'.splitlines(false), '\r'.splitlines()]
'a'.splitlines(1, 2)
['abc'.startswith('ab'), 'abc'.startswith(('x', 'a')), 'abc'.startswith(()), 'a'.startswith('abc'), 'abc'.endswith('c'), 'abc'.endswith(''), 'abc'.endswith(('c', 'x'))]
'a'.startswith()
'a'.startswith(1)
'a'.startswith(['a'])
'a'.startswith(('a', 1))
'a'.endswith(1, 2)
['abc'.removeprefix('ab'), 'abc'.removeprefix('x'), 'abc'.removesuffix('bc'), 'abc'.removesuffix('')]
'a'.removeprefix()
'a'.removesuffix(1)
'a'.removeprefix(1, 2)
['aba'.replace('a', 'x'), 'aba'.replace('a', 'x', 1), 'ab'.replace('', '.'), 'ab'.replace('', '.', 1), 'ab'.replace('z', '.')]
'a'.replace('a')
'a'.replace('a', 1)
'a'.replace(1, 'a')
'a'.replace('a', 'b', 'c')
'a'.replace('a', 'b', 1, 2)
['abc'.find('c'), 'abc'.find('z'), 'abc'.find(''), 'abc'.rfind(''), 'a'.find('abc'), 'a'.rfind('abc'), 'abab'.rfind('ab'), '\u00e9a'.find('a'), 'abc'.rfind('z')]
'a'.find()
'a'.find(1)
'a'.find('a', 1)
['aaa'.count('aa'), 'abc'.count(''), ''.count(''), 'abc'.count('z')]
'a'.count()
'a'.count(1)
'a'.count(1, 2)
['-'.join(['a', 'b']), ''.join('ab'), '-'.join([]), '-'.join({'a': 1})]
'-'.join()
'-'.join([1])
'-'.join(5)
'-'.join(1, 2)
['12'.isdigit(), ''.isdigit(), '1a'.isdigit(), 'ab'.isalpha(), 'a1'.isalpha(), ' \t'.isspace(), 'a'.isspace(), '\u0661'.isdigit(), '\u00e9\u01c5\u2160'.isalpha()]
'a'.isdigit(1)
'a'.zfill(3)
'a'.center
{}.update({'a': 1})
[1].append(2)
[1]['append']
5.append
['{}{}'.format(1, 'a'), '{1}{0}'.format(1, 2), '{a}{b}'.format(a=1, b=none), '{{}}'.format(), 'x'.format(), '{0}{0}'.format([1])]
'{'.format(1)
'}'.format(1)
'{a{b}}'.format(1)
'{}'.format()
'{0}{}'.format(1, 2)
'{9}'.format(1)
'{1234}'.format(1)
'{z}'.format(a=1)
'{}'.format(range)
'{aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee}'.format(1)
[{'a': 1}.get('a'), {'a': 1}.get('z'), {'a': 1}.get('z', 2), {'a': 1}.keys(), {'a': 1}.values(), {'a': 1}.items(), {'a': 1}.copy(), [1].copy()]
{}.get()
{}.get(1, 2, 3)
{}.keys(1)
{}.values(1)
{}.items(1)
{}.copy(1)
[1].copy(1)
[[1, 2].index(2), [1, 1].count(1), [].count(1), [1].count()]
[1].index(2)
[1].index()
[1].index(1, 2)
[1].count(1, 2)
dict([1])
dict({'a': 1}, b=2).items()|list
dict({'a': 1}, {'b': 2})
namespace(1)
namespace({'a': 1}).a ~ namespace().z
namespace().copy
range(0)|list ~ range(1, 3)|list ~ range(3, 1, -1)|list ~ range(1, 3, -1)|list ~ range(stop=3, start=1)|list
range()
range('a')
range('a', 1)
range(1, 'a')
range(1, 2, 'a')
range(1, 2, 0)
range(1, 2, 3, 4)
range(99999999999)
range(-99999999999)
range(-99999999999, 1)
range(99999999999, 1)
range(0, 1, 99999999999)
range(0, 1, -99999999999)
range(100001)
range(1.5)
raise_exception()
raise_exception(5)
raise_exception([range])
raise_exception(a=1)
raise_exception('a' * 400)
strftime_now('%Y') ~ strftime_now('')
strftime_now()
strftime_now(5)
strftime_now('a\x00b')
strftime_now('%', 2)
strftime_now('%c' * 64)
strftime_now('%c' * 63)
[1 is eq 1, 1 is eq(2), 1 is ne 1, 1 is lt 2, 1 is le 1, 1 is gt 2, 1 is ge 1, 1 is lessthan 2, 1 is greaterthan 2, 1 is equalto 1, 1 is in [1], none is sameas none, true is sameas true, true is sameas false, 1 is sameas 1, 'a' is in 'abc', 1 is eq 1.5, 1 is eq true, 1 is eq {'a': 1}, 'a' is eq 'a' 'b', 1 is eq 'a'.x]
[1 is odd, 2 is even, 4 is divisibleby 2, 4 is divisibleby(3), true is odd, 1.5 is odd, 1 is odd(), 1.5 is even]
'a' is odd
'a' is divisibleby 2
1 is divisibleby
1 is divisibleby 0
1 is odd 5
1 is eq
1 is eq(zz.y)
1 is eq(
1 is eq [
1 is eq({})(2)
1 is recursive
1 is odd recursive
1 is nothing
1 is lt 'a'
1 is in 5
1 is in zz
['AB' is upper, 'ab' is lower, 'aB' is upper, '1' is upper, 5 is lower, '' is lower, '\u01c5' is upper, '\u01c5' is lower]
range is upper
[1 is defined, zz is undefined, none is none, true is boolean, true is true, false is false, true is false, 1 is integer, 1.5 is float, 1 is number, 'a' is string, {} is mapping, range is callable, 'a'.upper is callable, 'a' is sequence, [1] is sequence, ([1]|reverse) is sequence, ([1]|reverse) is iterable, zz is sequence, 5 is iterable, {} is iterable, 5 is sequence, 1 is callable, 1 is true]
[1 is not defined, not 1 is defined, 1 is defined and 2 is defined or false, 1 if 1 is defined else 2, 1 is defined == true, 1 is defined in [true], 1 is defined not in []]
1 is defined is true
1 is defined if true
zz.y is defined
'a' is string | upper
('a' is string) ~ ('b' 'c' "d")
1 if true
(1 if false)
1 if zz.y
zz.y and 1
not zz.y
zz.y ~ 1
1 ~ zz.y
1 ~ range
-zz.y
1 + zz.y
1 < zz.y
zz.y < 1
zz.y|upper
zz.y()
(1)(2)
[1, 2,] ~ (1, 2,) ~ {'a': 1,} ~ () ~ (1) ~ [] ~ {}
not not true and not false or not 1
- - 1 ~ + - 1 ~ -1|abs ~ (-1)|abs
1 < 2 < 3 > 2 >= 2 <= 3 != 4 == 4 in [4] not in [5]
2 < 1 < 3
'\a\b\f\n\r\t\v\\\'\"\101\x41\u0041\U00000041\q\7\08\u00e9\u20ac\U0001f642'
'\N{DASH}'
'\ud800'
'\U00110000'
'\x4'
'\u12'
'\400'
'a
'a\
0b1
1a
1.a
1.5.a
1.5_
1e5a
1_000_ ~ 1__0 ~ 1E5 ~ 1e+5 ~ 1e-5 ~ 1.0e5
1e
1e+
1 2
1 +
1 *
1 ~
1 ~ 2 ~
1 <
1 not in
1 and
1 or
not
1 not
1 is
1 is not
1 is 5
1 |
1 | 5
1 | upper |
1 | upper(
1 if
1 if 2 else
1,
1, 2,
1, +
a.
a.5.b
a.99999999999999999999
a[
a[]
a[:]
a[1
a[1:+]
a[1:2:3:4]
a(
a(1
a(1 2)
a(1,)
a(b=)
a(b=1, 2)
a(*b)
a(**b)
a(,)
a(+)
(
()
(1
(1,
(+)
[
[1
[1 2]
[+]
{
{1
{1:
{1: 2
{1: 2 3: 4}
{1 2}
{+: 1}
{1: +}
)
!
$
a;b
2 ** 3
1 == 1 == +
aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee
"""

STATEMENTS = (
    "{% for i in [1, 2, 3] %}{{ loop.index0 }}{{ loop.revindex }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }}{{ loop['index'] }}{{ loop[0] }}{{ loop.zz }}{{ loop|length }}{% endfor %}",
    "{% for i in [1, 2] %}{{ loop.cycle('a', 'b') }}{{ loop.changed(i, 1) }}{{ loop.changed(1) }}{{ loop.last }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop['cycle'](1) }}{% endfor %}",
    "{% for i in [1] %}{{ loop.cycle() }}{% endfor %}", "{% for i in [1] %}{{ loop.cycle(a=1) }}{% endfor %}", "{% for i in [1] %}{{ loop.cycle(1, a=1) }}{% endfor %}", "{% for i in [1] %}{{ loop }}{% endfor %}",
    "{% for i in [1] %}{{ [loop] }}{% endfor %}", "{% for i in [1] %}{{ loop == loop }}{{ loop|tojson }}{% endfor %}", "{% for i in 5 %}{% endfor %}", "{% for i in zz.y %}{% endfor %}",
    "{% for i in [1, 2] if i.a.b %}{% endfor %}", "{% for i in [1, 2] if i > 1 %}{{ i }}{% else %}n{% endfor %}", "{% for a, b in [[1, 2], [3]] %}{% endfor %}",
    "{% for a, b in [1] %}{% endfor %}", "{% for (a, b) in {'x': 1}.items() %}{{ a }}{{ b }}{% endfor %}", "{% for a, b, in [(1, 2)] %}{{ a }}{% endfor %}", "{% for a, b in [(1, 2, 3)] %}{% endfor %}",
    "{% for a in 'a\u00e9c' %}{{ a }}{% endfor %}", "{% for a in {'k': 1} %}{{ a }}{% endfor %}", "{% for a in zz %}{% else %}e{% endfor %}", "{% for a in 1, 2 %}{{ a }}{% endfor %}", "{% for a in [] %}{% else %}{{ zz.y }}{% endfor %}",
    "{% for a in messages %}{% for b in a.content %}{% if b == 'q' %}{% break %}{% endif %}{% continue %}{% endfor %}{% endfor %}", "{% for a in [1] recursive %}{% endfor %}",
    "{% for a, b in [(1, 2)] if a > b %}{% endfor %}", "{% for a, b in [1] if a %}{% endfor %}", "{% for i in [1] %}{% for i in 5 %}{% endfor %}{% endfor %}", "{% for i in [0] %}{{ 1 // i }}{% endfor %}", "{% for i in [1] if 1 // 0 %}{% endfor %}",
    "{% if true %}{% if false %}{% elif 1 %}a{% else %}{% endif %}{% endif %}{% if 0 %}{% else %}{% if 1 %}b{% endif %}c{% endif %}", "{% if zz.a %}{% endif %}", "{% if 0 %}{% elif 0 %}{% endif %}", "{% if 0 %}{% else %}{% if 1 %}b{% endif %}{% endif %}", "{% if 0 %}{% elif zz.a %}{% endif %}",
    "{% set a = 1 %}{% set b = a, 2 %}{% set c, d = b %}{{ c }}{{ d }}", "{% set a, b = [1] %}", "{% set a, b = [1, 2, 3] %}", "{% set a, b = 5 %}", "{% set a.b = 1 %}", "{% set a = 1 %}{% set a.b = 1 %}", "{% set ns = namespace() %}{% set ns.a = zz.y %}", "{% set a = zz.y %}",
    "{% set ns = namespace(a=1) %}{% set ns.b = [ns.a] %}{{ ns.b }}{{ ns }}", "{% set ns = namespace(a=1) %}{{ ns.zz }}{{ ns['a'] }}{{ ns|tojson }}", "{% set x %}{% for i in [1] %}{{ i }}{% endfor %}{% endset %}{{ x }}",
    "{% set x | replace('a', 'b') | upper %}{{ messages[0].content }}a{% endset %}{{ x }}", "{% set x | nothing %}a{% endset %}", "{% set x %}{{ 1 // 0 }}{% endset %}", "{% set (a, b) = (1, 2) %}{{ a }}", "{% set ns = namespace() %}{% set ns.a %}t{% endset %}{{ ns.a }}",
    "{% macro m(a, b=a, c=[1]) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m() }}{{ m(1, 2, 3) }}{{ m(c=1, a=2) }}{{ m }}", "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(z=2) }}", "{% macro m(a) %}{% endmacro %}{{ m(1, a=2) }}", "{% macro m(a,) %}{{ a }}{% endmacro %}{{ m(zz.y) }}",
    "{% macro m(a=zz.y) %}{% endmacro %}{{ m() }}", "{% macro m() %}{{ 1 // 0 }}{% endmacro %}{{ m() }}", "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}", "{% macro m() %}x{% endmacro %}{{ m|upper }}", "{% macro m() %}x{% endmacro %}{{ [m()] }}{{ m is callable }}{{ m == m }}{{ m.a }}{{ m|tojson }}",
    "{% macro m() %}{{ caller(1, 2) }}{% endmacro %}{% call(a) m() %}{{ a }}{% endcall %}", "{% call 5 %}{% endcall %}", "{% call zz() %}{% endcall %}", "{% call zz.y.x() %}{% endcall %}", "{% call zz(1 // 0) %}{% endcall %}", "{% call range(3) %}{% endcall %}", "{% call namespace() %}{% endcall %}", "{% call 'a'.upper() %}{% endcall %}",
    "{% macro m() %}{% break %}{% endmacro %}", "{% for i in [1] %}{% macro m() %}{% continue %}{% endmacro %}{% endfor %}", "{% macro m() %}{% endmacro %}{% for i in [1] %}{% call m() %}{% break %}{% endcall %}{% endfor %}",
    "{% filter upper | replace('A', 'b') | trim('x') %}a{{ messages[0].content }}{% endfilter %}", "{% filter nothing %}{% endfilter %}", "{% filter indent(width=1 // 0) %}{% endfilter %}", "{% filter upper %}{{ zz.y }}{% endfilter %}",
    "{% with %}{{ n }}{% endwith %}{% with a = 1, b = a %}{{ b }}{% endwith %}", "{% with a = 1 // 0 %}{% endwith %}", "{% generation %}{% set g = 1 %}{{ g }}{% endgeneration %}{{ g }}",
    "{% if 1 %}", "{% for i in [1] %}", "{% macro m() %}", "{% call m() %}", "{% filter upper %}", "{% with a = 1 %}", "{% set a %}", "{% generation %}", "{% if 1 %}{% else %}", "{% for i in [1] %}{% else %}", "{% if 1 %}{% elif %}{% endif %}", "{% if 1 %}{% else x %}{% endif %}", "{% for i in [1] %}{% endfor x %}",
    "{% if 1 x %}{% endif %}", "{% for 5 in [1] %}{% endfor %}", "{% for i of [1] %}{% endfor %}", "{% for i in %}{% endfor %}", "{% for i in [1] if %}{% endfor %}", "{% for i, 5 in [1] %}{% endfor %}", "{% for (i in [1] %}{% endfor %}", "{% set %}", "{% set 5 = 1 %}", "{% set a = %}", "{% set a. = 1 %}", "{% set (a = 1 %}", "{% set a 5 %}{% endset %}",
    "{% set a | %}{% endset %}", "{% set a | 5 %}{% endset %}", "{% set a | upper | 5 %}{% endset %}", "{% macro %}{% endmacro %}", "{% macro m %}{% endmacro %}", "{% macro m(5) %}{% endmacro %}", "{% macro m(a=) %}{% endmacro %}", "{% macro m(a b) %}{% endmacro %}", "{% macro m(a", "{% macro m() x %}{% endmacro %}", "{% call %}{% endcall %}", "{% call(5) m() %}{% endcall %}",
    "{% call m() x %}{% endcall %}", "{% call(a=1) m() %}{% endcall %}", "{% filter %}{% endfilter %}", "{% filter 5 %}{% endfilter %}", "{% filter upper x %}{% endfilter %}", "{% filter upper( %}{% endfilter %}", "{% with a %}{% endwith %}", "{% with a = %}{% endwith %}", "{% with a = 1 b = 2 %}{% endwith %}", "{% with 5 = 1 %}{% endwith %}", "{% generation x %}{% endgeneration %}", "{% break x %}", "{% continue %}",
    "{% 5 %}", "{% %}", "{{ }}", "{{", "{%", "{#", "{{ 1 %}", "{% if 1 }}", "{{ 1", "{{ 1.5", "{{ 1e5", "{{ 1e+", "{{ 'a\\", "{{ a", "{% if 1", "{# a", "{#a#}b{#- c -#} d {#+ e +#} f", "{% endfor %}", "{% else %}", "{% endif %}", "{% include 'x' %}", "{% if 1 %}{% endfor %}", "{% aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee %}", "{{ 'a\\\nb' }}", "{{ 1\n\n+ }}", "{%- if 1 %}{{- 2 }}",
    "{% raw %}", "{% raw %}{% endraw", "{% raw %} {%+ endraw +%} x", "{%- raw -%} {{ a }} {%- endraw -%} x", "{%  raw  %}{%", "{%+ raw +%}{%-  endraw  %}", "{% raw x %}{% endraw %}", "{% raw", "{%-raw-%}a{%-endraw-%}", "{% rawx %}", "{%\nraw\n%}{%\nendraw\n%}", "{% raw %}{{ {% x %} {% endra %}{% endraw %}", "{% raw +%}\n  a\n  {% endraw %}\nb", "{%", "{%-", "{% r",
    "a\n  {%+ if 1 +%}\n  b\n  {%- endif -%}\n\n c", "  {{- 1 -}}  \n", "{{ 1 +}}", "x{% if 1 %}\n{% endif %}\n\n", "\r\n\r", "a\r", "{{'a'}}{{\"b\"}}{{- '-}}' -}}", "\udcff\udcfe{{ '\udcff' }}", "{% if 1 %}\n  {# x #}\n  {% endif %}", "a {% if 1 -%}\n\n  x{% endif %}", "{{ 1 -}} \n {% if 1 %}{% endif %}", "{{ 1 -}}\n\t{%+ if 1 %}{% endif %}",
    "{{ messages }}{{ tools }}{{ documents }}{{ bos_token }}{{ eos_token }}{{ add_generation_prompt }}", "{{ messages[-1].content|tojson }}{{ messages[-1].tool_calls|tojson }}", "{% for m in messages %}{{ m.role }}{{ m.name }}{{ m.tool_call_id }}{{ m.content }}{% for c in m.tool_calls %}{{ c.function.arguments }}{% endfor %}{% endfor %}",
    "{% for m in messages %}{{ m.content + 'x' }}{% endfor %}", "{% for m in messages %}{% if m.tool_calls %}{{ m.tool_calls[0].function.arguments + 'x' }}{% endif %}{% endfor %}", "{% for m in messages %}{{ m.tool_calls[0].function.arguments.n }}{% endfor %}", "{{ messages[0].content[0] }}{{ messages[0].content[::-2] }}{{ messages[0].content|list }}",
    "{% for m in messages %}{% if m.tool_calls %}{{ m.tool_calls[0].function.arguments + 'x' }}{{ m.content + 'x' }}{% endif %}{% endfor %}",
    "{{ ('<'|safe) + messages[0].content + '&\"' }}{{ messages[0].content|title|capitalize }}{{ messages[0].content.split()|join('|') }}", "{{ messages[0].content * 2 }}{{ (messages[0].content ~ 'x')[1:] }}{{ (messages[0].content ~ 'x')|list|join }}{{ [messages[0].content ~ 'x'] }}",
)

# What is done with a long text, L: its steps are counted by its bytes.
LONG = """
L|upper
L|title
L|trim
L|trim('a')
L|length
L|list|length
L|reverse
L|replace('z', '')
L|replace('a', 'b')
L|replace('', '-')
L|replace('', '-', 3)
L|indent(2, true)
L|tojson
L|tojson(ensure_ascii=true)
[L]
{L: L}
L.split()
L.split('a')
L.rsplit()
L.rsplit('a')
L.rsplit('a', 2)
L.splitlines()
L.splitlines(true)
L.find('z')
L.find('y')
L.rfind('z')
L.count('a')
L.count('')
L.isalpha()
L.isspace()
L.startswith('a')
L.removeprefix('a')
L.format(1)
L is lower
L == L
L < L
L in L
'z' in L
L in [L]
L[5]
L[5:]
L[::-2]
L[99:0:-3]
L * 3
L + L
L ~ L
L|safe + L
(L|safe) + '<' * 99
'<' * 99 + (L|safe)
L|map('upper')|list
L|join(', ')
[L, L]|join(L)
L.join([L, L])
L|sort|join
L|unique|list
L|min
[L, L]|sort
{'a': L, 'b': [L, {}, [], ()]}|tojson
{'a': L, 'b': [L, {}, [], ()]}|tojson(indent=1)
{'b': 1, 'a': {1: 2, none: 3, true: 4, 1.5: 5}}|tojson(indent=1)
{'b': 1, 'a': 2, 'c': 3}|tojson(sort_keys=true)
['a', ('b',), {'c': 'd', 'e': 1.5}, none, true]|string
'x'|indent(200)
[1, 2]|reverse|list
{'b': 1, 'A': 2}|dictsort
{'b': 1, 'A': 2}.items()|list
[1, 2, 3][::2]
[1, 2] + [3]
[1, 2]|select('odd')|list
[1, 2]|map('string')|list
dict({'a': 1, 'b': 2}, c=3)
namespace(a=1, b=2).a
range(20)|list
'{{}} {} {a}'.format(1, a='b')
'<&>'|safe + '<&>'
raise_exception(L)
"""

# More than is allowed: nested too deep, too many steps, too long a text.
DEEP = (
    "{{ " + "(" * 500 + "1" + ")" * 500 + " }}", "{{ " + "[" * 500 + " }}", "{{ " + "not " * 500 + "1 }}", "{{ " + "-" * 500 + "1 }}", "{% if 1 %}" * 500, "{{ d" + ".a" * 500 + " }}", "{{ 1" + "+1" * 500 + " }}", "{{ 1" + "|string" * 500 + " }}",
    "{% for a in range(999) %}{% for b in range(999) %}{{ b }}{% endfor %}{% endfor %}", "{% set ns = namespace(x='ab') %}{% for i in range(30) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}", "{{ 'x' * 99999999 }}", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "{{ range(999)|sort(reverse=true) }}", "{{ range(999)|unique|list }}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(999) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x|tojson }}", "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(500) %}{% set ns.x = [ns.x] %}{% set ns.y = [ns.y] %}{% endfor %}{{ ns.x == ns.y }}", "{% set ns = namespace(x=[1]) %}{% for i in range(500) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace(x=[1], y=[2]) %}{% for i in range(500) %}{% set ns.x = [ns.x] %}{% set ns.y = [ns.y] %}{% endfor %}{{ ns.x < ns.y }}", "{{ ('a' * 999)|replace('', 'b' * 999) }}", "{{ 'a'|indent(99999999) }}", "{{ " + "1 if 1 else " * 500 + "1 }}", "{{ " + "9" * 70 + " }}", "{{ " + "1_" * 70 + "1.5 }}", "{{ 'a' * 9999 }}" * 60,
)

# Tools, calls and variables that are no such JSON, or unusual.
JSON = (
    ("{}", "", ""), ("[", "", ""), ("", "{}", ""), ("", "[1]", ""), ("", "[{}]", ""), ("", '[{"function": 1}]', ""), ("", '[{"function": {"arguments": 1}}]', ""), ("", '[{"function": {"arguments": "[1]"}}]', ""), ("", '[{"function": {"arguments": "{"}}]', ""),
    ("", "", "[]"), ("", "", "{"), ("[9223372036854775808]", "", ""), ("[1e5, -1.5E-3, 12345678901234567890123456789012345678901234567890123456789012345]", "", ""), ('["\\ud83d\\ude42 \\u0000 \\n\\b\\f\\r\\t\\/ \\u00E9\\uaBcD", true, false, null, {"a": {}}]', "", '{"messages": 1, "a b": 2}'),
    ("[\udcff]", "", ""), ('["\udcff"]', "", ""), ('["\u00e9"]', "", ""), ("[1,]", "", ""), ('{"a" 1}', "", ""), ('{"a": 1 "b"}', "", ""), ("[1 2]", "", ""), ("[tru]", "", ""), ("[01]", "", ""), ("[1.]", "", ""), ("[1e]", "", ""), ("[1e+5, 0]", "", ""), ("[-]", "", ""), ('["\\x"]', "", ""), ('["\\', "", ""), ('["\\ud800"]', "", ""), ('["\\udc00"]', "", ""), ('["\\ud800\\u0041"]', "", ""), ('["\\u12', "", ""), ('["\\u12g4"]', "", ""), ('["\t"]', "", ""), ('["a', "", ""), ("[1]x", "", ""), ("[" * 600, "", ""), ('{1: 2}', "", ""), ('{"', "", ""), ("\r\n\t [\n] ", "", ""),
)


def constants(source):
    """Values of the constants of a module, without running it: it needs Jinja2."""
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Assign):
            try:
                yield statement.targets[0].id, ast.literal_eval(statement.value)
            except ValueError:
                continue


def expressions(text):
    """Lines are cut at each ` | `: runs of up to three pieces."""
    for line in text.strip().splitlines():
        parts = line.split(" | ")
        for n in (1, 2, 3):
            for start in range(len(parts) - n + 1):
                yield "{{ " + " | ".join(parts[start : start + n]) + " }}"


def limits(draw):
    """What a short template takes is about this much, so that many places are where a limit is met."""
    return (STEPS, draw.randrange(80)), (MEMORY, 215 + draw.randrange(200)), (OUTPUT, draw.randrange(40))


def inputs():
    """(first byte, limit, parts) of each."""
    path = Path(__file__).resolve().parents[1] / "templates" / "test_templates.py"
    found = dict(constants(path.read_text(encoding="utf-8")))
    job, draw = found["JOB"], random.Random(1)
    rest = [job["messages"][1]["content"], json.dumps(job["tools"]), "", json.dumps(job["variables"])]
    called = [rest[0], rest[1], json.dumps(CALLS), rest[3]]
    rare = ["{{ " + line + " }}" for line in RARE.strip().split("\n")]
    for source in [*found["STATEMENTS"], *STATEMENTS, *DEEP, *rare]:
        yield 0, 0, [source, *rest]
        for kind, limit in limits(draw):
            yield kind, limit, [source, "a\u00e9 b", "", "", ""]
    for line in LONG.strip().split("\n"):
        for _ in range(8):
            for kind, limit in limits(draw):
                yield kind, limit, ["{% set L = messages[0].content %}{{ " + line + " }}", "a b\u00e9, c\n" * 60 + "y", "", "", ""]
    for source in expressions(found["EXPRESSIONS"]):
        yield STEPS, draw.randrange(400), [source, *rest]
    for source in [*found["TEMPLATES"].values(), *(source for source in STATEMENTS if "messages" in source)]:
        for kind in (0, NO_CONTENT, ALL_ELSE, NO_CONTENT + ALL_ELSE):
            yield kind, 0, [source, *called]
            yield kind, 0, [source, *rest]
            for which in (STEPS, MEMORY):
                yield kind + which, draw.randrange(1500), [source, *called]
    for tools, calls, variables in JSON:
        yield 0, 0, ["{{ messages }}{{ tools }}", "x", tools, calls, variables]


def main():
    folder = Path(sys.argv[1])
    for i, (kind, limit, parts) in enumerate(inputs()):
        head = bytes([kind, limit & 255, limit >> 8])
        (folder / f"{i:04d}").write_bytes(head + b"\0".join(text.encode("utf-8", "surrogateescape") for text in parts))


if __name__ == "__main__":
    main()
