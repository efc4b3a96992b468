"""Writes corpus.jsonl: what a real RE2 (PyPI google-re2, with Envoy's options) says of many expressions.

Usage: python3 generate.py >corpus.jsonl. A line is an expression with null if RE2 refuses it, or with three lists of
values: those that it matches as a whole, those that it matches in part only, and those that it does not match. Each
character of a value is a byte.
"""

import json
import random

import re2

COUNT = 1500
LENGTH_MAX = 24
WRITTEN = r"""[\w-.]+ [^\w-/]+ [\d-z] /users/{id} a{ a{,3} \Qa.b\E \101 \p{^L} [a&&b] [a~~b] [a--b] [[a]b] \<a a\> \b{start}a
a++ a** a*+ a?? a{1001} a{1000} a{2,1} a{01} (?x) (?x:a) \u0041 \x{41} \x41 [[:alpha:]] [[:foo:]] (a)\1 (?=a) (?P<n>a) (?<n>a)
.* /api/v[0-9]+/.* ^/a$ (?i)k [^a] \pN \p{Greek} \p{greek} (?U)a+? (?s). (?m)^a$ \Z \z \E [] []a] a|* (|a) ^* \b* (?) a(?i)*""".split()
ATOMS = list("aabkKſéßΣς0_-/.&~[]{}^$,:<|") + r"""\d \w \s \D \W \S \b \B \A \z \. \- \_ \x41 \x{e9} \x{100} \xff \C \101 \0 \n \pL \p{^L} \P{Lu}
\p{Greek} \Qa.b\E \E \< \u0041 \Z \1 (a) (?:ab) (?i) (?-i) (?s) (?m) (?U) (?i:k) (?x) (?) (?P<n>a) (?=a) {id} \é [[:alpha:]]""".split()
MEMBERS = list("abkKſé09-^]&~[.:|{") + r"\d \w \s \D \W \pL \P{Lu} [:alpha:] [:^space:] [:foo:] a-z z-a \- \] \n \101 \b a-\d && -- ~~ α-ω".split()
REPEATS = "* + ? *? +? ?? {2} {0} {1,2} {2,} {0,1}? {,3} { {1 {2,1} {1001} {01} ** ++ {2}{3}".split()
VALUES = list("abkKſéßΣς0_-/.&~[]{}^:<|A\n") + ["ab", "a.b", "aa", "Ka", "\u0661", "\u212a", "{id}"]

BYTES = [b"\xff", b"\xe9", b"a\xe9", b"\xc9", b"\xb5", b"\xdf", b"\xc3", b"\xa9\xc3"]


def expression(pick, depth=0):
    text = ""
    for _ in range(pick.choice([1, 1, 2, 2, 3])):
        kind = pick.random()
        if kind < 0.55:
            text += pick.choice(ATOMS)
        elif kind < 0.8:
            members = "".join(pick.choice(MEMBERS) for _ in range(pick.randint(0, 4)))
            text += "[" + pick.choice(["", "^"]) + members + pick.choice(["]"] * 14 + [""])
        elif depth < 2:
            text += pick.choice(["(", "(?:", "(?i:", "(?i)(", "(?-i:"]) + expression(pick, depth + 1) + ")"
        if pick.random() < 0.3:
            text += pick.choice(REPEATS)
        if pick.random() < 0.08:
            text += "|"
    return text


def line(source, pick, options):
    try:
        compiled = re2.compile(source.encode(), options)
    except re2.error:
        return [source, None]
    values = ["", "a"] + [pick.choice(VALUES) + pick.choice(["", pick.choice(VALUES)]) for _ in range(4)]
    found = [[], [], []]
    values = [value.encode() for value in values + [source[:6]]] + [pick.choice(BYTES)]
    for value in sorted(set(values)):
        whole, part = compiled.fullmatch(value), compiled.search(value)
        found[0 if whole else 1 if part else 2].append(value.decode("latin-1"))
    return [source, found]


def main():
    pick, options = random.Random(7), re2.Options()
    options.log_errors = False
    options.encoding = re2.Options.Encoding.LATIN1
    sources = dict.fromkeys(WRITTEN)
    while len(sources) < COUNT:
        source = expression(pick)
        if len(source) <= LENGTH_MAX:
            sources[source] = None
    for source in sources:
        print(json.dumps(line(source, pick, options), ensure_ascii=False, separators=(",", ":")))


main()
