"""Lets links of the book that lead out of `docs` reach the files beside it: a preprocessor of mdbook.

mdbook writes `.html` for `.md` wherever it stands, so the dot is written as `%2E`.
"""

import json
import re
import sys

LINK = re.compile(r"\[([^\]]*)\]\(\.\./([^)\s]*)\)")


def outside(link):
    return f'<a href="../../{link[2].replace(".md", "%2Emd")}">{link[1]}</a>'


def mend(part):
    if isinstance(part, dict) and "content" in part:
        part["content"] = LINK.sub(outside, part["content"])
    parts = part.values() if isinstance(part, dict) else part if isinstance(part, list) else []
    for one in parts:
        mend(one)


if sys.argv[1:2] != ["supports"]:
    _, book = json.load(sys.stdin)
    mend(book)
    json.dump(book, sys.stdout)
