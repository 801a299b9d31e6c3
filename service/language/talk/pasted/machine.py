"""What machines write and read: logs, stack traces, diffs, code, terminals, settings, tables, lists of search terms."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from service.language.talk.pasted.lines import Line, Pasted, paragraphs, pasted
from service.language.talk.pasted.remarks import is_remark
from service.language.talk.worth import FIRST_PERSON

FENCE = re.compile(r"^\s*(?:```|~~~)")
LOG_LINE = re.compile(
    r"^\s*(?:\[?\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}|\[?\d{2}/\w{3}/\d{4}:\d{2}|\w{3} +\d{1,2} \d{2}:\d{2}:\d{2}"
    r"|\[?\d{2}:\d{2}:\d{2}[.,\]]|\d{2}:\d{2}:\d{2}\s+\S+\s"
    r"|\[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE|FATAL|CRITICAL)\b[\]: ]|E\d{4}|\d{1,3}(?:\.\d{1,3}){3} - )"
)
TRACE = re.compile(
    r"^\s*(?:Traceback \(most recent|File \"[^\"]+\", line \d+|at [\w.$<>]+\(|Caused by:|goroutine \d+|panic:"
    r"|[\w.]+(?:Error|Exception)\b\s*(?::|$)|\^+$|npm ERR!|\s*\d+ \|)"
)
DIFF = re.compile(r"^(?:diff --git|index [0-9a-f]{6,}|@@ .* @@|--- [ab/]|\+\+\+ [ab/])")
CHANGED = re.compile(r"^[+-]")
"""A changed line, in a paragraph that has a line of `DIFF`."""

CODE = re.compile(
    r"^\s*(?:def \w+\(|class \w+[(:{]|import [\w.]+$|from [\w.]+ import |(?:const|let|var) \w+\s*=|function\s*\w*\("
    r"|return\b[^.]{0,80};?$|#include|(?:public|private|protected) (?:static|final|class|void|int|\w+\()"
    r"|package [\w.]+;|SELECT\b.+\bFROM\b|INSERT INTO|UPDATE \w+ SET|CREATE (?:TABLE|INDEX)|WHERE\b"
    r"|[$%>]{1,3} [\w./]+|\w+@[\w-]+:.*\$|</?[a-zA-Z!][^>]*>|[{}\[\]()]+[,;]?\s*$|\"[\w-]+\"\s*:\s*.+,?$"
    r"|[\[{].*[\]}],?\s*$|.*[{}]\s*$|.*[=(){}>].*;\s*$|if .*[=<>()].*:$|for \w+ in .*:$|while .*[=<>()].*:$"
    r"|elif .*:$|else:$|try:$|except\b.*:$|\w+\(.*\)\s*$|[\w.]+ = \S.*$|@\w+(?:\.\w+)*(?:\(.*\))?\s*$|//|/\*|\*/|<!--"
    r"|commit [0-9a-f]{7,40}\b|Author: .*<\S+@|Date: {2,}|\s+[\w-]+:\s*$|(?:\w+=[^\s,;&]+[ ,;&]+)+\w+=[^\s,;&]+\s*$"
    r"|\\(?:begin|end|section|item)\b|(?:GET|POST|PUT|DELETE|PATCH|HTTP/\d\S*) \S*[/\d]\S*)"
)
SETTING = re.compile(
    r"^\s*(?:\[[\w .:/-]+\]\s*$|(?:export )?[A-Za-z_][\w.-]*=\S.*$|[A-Z][A-Z-]{3,}(?:;[^:\s]*)?:\S"
    r"|\s{2,}(?:- )?[\w-]+:\s|[a-z][\w-]*:\s*$|-{3}\s*$)"
)
"""A line of settings, a calendar entry, subtitles; in a run of such."""

INDENTED = re.compile(r"^(?: {4}|\t)\s*[^\s\d*•–-]")
SUBTITLE = re.compile(r"^\s*\d\d:\d\d\S* --> ")
NOTE = re.compile(r"^\s*(?:--|#|;|//)\s*\S")
"""A line of a comment, next to code."""

OUTPUT_OF = re.compile(r"^\s*[$%>#]{1,3} \S")
MIN_TABLE_LINES = 3
TERMS = re.compile(r"\s*[^\W\d_][^.,:;!?|\n]{0,60}\s*$")
MIN_TERMS, MAX_TERM_WORDS = 12, 6
"""Lines in a row, and words of each, from which on short lines without a stop are search terms and no notes."""

MAX_FORM_CHARS = 500
"""Characters by which a line shows its form."""


def fenced(lines: Sequence[Line]) -> Iterator[Pasted]:
    """The lines between code fences, fences included; to the end where none closes."""
    opened = False
    for line in lines:
        fence = FENCE.match(line.text) is not None
        if opened or fence:
            yield from pasted([line])
        opened = opened != fence


def machine_text(lines: Sequence[Line]) -> Iterator[Pasted]:
    """The lines of logs, traces, diffs, code, settings and tables, with the output and comments between them."""
    for paragraph in paragraphs(lines):
        if any(SUBTITLE.match(line.text) for line in paragraph):
            yield from pasted(paragraph)
            continue
        patch = any(DIFF.match(line.text) for line in paragraph)
        marked = [_is_machine_line(line.text) or (patch and CHANGED.match(line.text) is not None) for line in paragraph]
        settings = [SETTING.match(line.text) is not None for line in paragraph]
        if sum(settings) >= 2 or any(marked):
            marked = [a or b for a, b in zip(marked, settings, strict=True)]
        rows = [at for at, each in enumerate(marked) if each]
        if len(paragraph) >= MIN_TERMS and sum(_is_term(line.text) for line in paragraph) * 10 >= len(paragraph) * 9:
            yield from pasted(paragraph)
            continue
        if not rows:
            yield from pasted(_table(paragraph))
            continue
        first, last = rows[0], rows[-1]
        while last + 1 < len(paragraph) and _goes_on(paragraph[last].text, paragraph[last + 1].text):
            last += 1
        dense = len(rows) * 2 >= last + 1 - first
        yield from pasted(line for at, line in enumerate(paragraph) if marked[at] or (dense and first <= at <= last))


def _is_machine_line(line: str) -> bool:
    return any(form.match(line[:MAX_FORM_CHARS]) for form in (LOG_LINE, TRACE, DIFF, CODE, INDENTED))


def _is_term(line: str) -> bool:
    words = line[:MAX_FORM_CHARS].split()
    return len(words) <= MAX_TERM_WORDS and TERMS.match(line) is not None and FIRST_PERSON.search(line) is None


def _goes_on(line: str, following: str) -> bool:
    """Whether the line behind one of code belongs to it: a comment, an indented line, what a command printed."""
    if is_remark(following):
        return False
    return NOTE.match(following) is not None or following[:1].isspace() or OUTPUT_OF.match(line) is not None


def _table(lines: Sequence[Line]) -> Iterator[Line]:
    """The longest runs of lines with the same number of columns."""
    for mark in ("|", "\t", ";", ","):
        run: list[Line] = []
        for line in [*lines, None]:
            columns = line.text.count(mark) if line is not None and not line.text.rstrip().endswith((".", "!")) else 0
            if line is None or columns < 2 or (run and columns != run[0].text.count(mark)):
                if len(run) >= MIN_TABLE_LINES:
                    yield from run
                run = []
            if line is not None and columns >= 2:
                run.append(line)
