"""Names of many hosts in one word: ``gpu[01-16]``, ``rack[1-2]-node[1,3,5-7]``; pure."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable

MOST = 4096
"""One word stands for so many names at most: more is a typing mistake."""
_DIGITS = 9
_RANGE = re.compile(r"\[([^\[\]:]*)\]")
_IPV6 = re.compile(r"\[[^\[\]]*:[^\[\]]*\]")
_ITEM = re.compile(rf"([0-9]{{1,{_DIGITS}}})(?:-([0-9]{{1,{_DIGITS}}}))?")
_LAST = re.compile(rf"(.*?)([0-9]{{1,{_DIGITS}}})([^0-9]*)")
"""A name's last number, with what stands around it."""
_FIELD = re.compile(r"\{([^{}]*)\}")


def has_range(word: str) -> bool:
    """Whether a word stands for several names, or tries to; IPv6 addresses in brackets do not."""
    rest = _IPV6.sub("", word)
    return "[" in rest or "]" in rest


def expand(word: str) -> list[str]:
    """Return the names that a word stands for, in order; a word without a range is itself.

    Numbers keep their width: ``[01-03]`` gives ``01``, ``02``, ``03``.

    Raises:
        ValueError: a range is empty or absurd; the message says which.
    """
    return [name for name, _ in _expanded(word)]


def pair(word: str, address: str) -> list[tuple[str, str]]:
    """Return each name that a word stands for, with its address.

    Args:
        word: the name or names.
        address: one for all of them: ``{name}`` is the name, ``{n}`` the number of its range,
            ``{n2}`` that of a second one. Or as many as there are names, by a range of its own:
            ``10.0.0.[11-26]``.

    Raises:
        ValueError: a range is empty or absurd, the numbers of names and addresses differ, or a
            field is not known.
    """
    names = _expanded(word)
    addresses = expand(address)
    if len(addresses) == 1:
        addresses *= len(names)
    if len(addresses) != len(names):
        raise ValueError(f"{word} is {len(names)} hosts and {address} {len(addresses)} addresses")
    return [
        (name, _filled(template, {"name": name, **numbers}))
        for (name, numbers), template in zip(names, addresses, strict=True)
    ]


def _filled(template: str, fields: dict[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        if found[1] not in fields:
            known = ", ".join(f"{{{name}}}" for name in fields)
            raise ValueError(f"{template}: {found[0]} is not known here; there is {known}")
        return fields[found[1]]

    return _FIELD.sub(value, template)


def _expanded(word: str) -> list[tuple[str, dict[str, str]]]:
    """Return names, each with the numbers of its ranges: ``n``, ``n2``, ..."""
    if has_range(_RANGE.sub("", word)):
        raise ValueError(f"{word}: a bracket is missing; a range is written as gpu[01-16]")
    parts = _RANGE.split(word)
    texts = parts[::2]
    choices = [_numbers(inside, word) for inside in parts[1::2]]
    if math.prod(map(len, choices)) > MOST:
        raise ValueError(f"{word}: more than {MOST} names")
    found = []
    for numbers in itertools.product(*choices):
        fields = {f"n{place}" if place > 1 else "n": it for place, it in enumerate(numbers, 1)}
        words = (number + text for number, text in zip(numbers, texts[1:], strict=True))
        found.append((texts[0] + "".join(words), fields))
    return found


def _numbers(inside: str, word: str) -> list[str]:
    """Return the numbers of one pair of brackets, as text."""
    found: dict[str, None] = {}
    for item in inside.split(","):
        read = _ITEM.fullmatch(item.strip())
        if read is None:
            said = f"`{item}` is no number and no range" if item.strip() else "an empty range"
            raise ValueError(f"{word}: {said}; write [1-16], [01-16] or [1,3,5-7]")
        for number in _one_range(read[1], read[2] or read[1], word):
            if number in found:
                raise ValueError(f"{word}: {number} stands twice in it")
            found[number] = None
        if len(found) > MOST:
            raise ValueError(f"{word}: more than {MOST} names")
    return list(found)


def _one_range(first: str, last: str, word: str) -> list[str]:
    padded = any(len(it) > 1 and it.startswith("0") for it in (first, last))
    width = len(first) if padded else 0
    if padded and len(last) != width:
        raise ValueError(f"{word}: {first} and {last} have different widths")
    begin, end = int(first), int(last)
    if end < begin:
        raise ValueError(
            f"{word}: {first}-{last} is an empty range; the smaller number comes first"
        )
    if end - begin >= MOST:
        raise ValueError(f"{word}: more than {MOST} names")
    return [f"{number:0{width}d}" for number in range(begin, end + 1)]


def fold(names: Iterable[str]) -> str:
    """Return names in few words: ``gpu[01-03,07], spark-1``; ``expand`` undoes each of them.

    Names that differ in one number alone are put together, where the first of them stands.
    """
    groups: dict[tuple[str, str, int], list[str]] = {}
    for name in dict.fromkeys(names):
        head, number, tail = _split(name)
        width = len(number) if len(number) > 1 and number.startswith("0") else 0
        fitting = [key for key in groups if key[:2] == (head, tail) and number]
        same = next((key for key in fitting if key[2] in (width, len(number))), None)
        groups.setdefault(same or (head, tail, width), []).append(number)
    return ", ".join(_in_brackets(key[0], numbers, key[1]) for key, numbers in groups.items())


def _split(name: str) -> tuple[str, str, str]:
    """Part a name at its last number that is short enough to be counted."""
    found = _LAST.fullmatch(name)
    return (found[1], found[2], found[3]) if found else (name, "", "")


def _in_brackets(head: str, numbers: list[str], tail: str) -> str:
    if len(numbers) == 1:
        return f"{head}{numbers[0]}{tail}"
    runs: list[list[str]] = []
    for number in sorted(numbers, key=int):
        if runs and int(number) == int(runs[-1][-1]) + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    words = [run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return f"{head}[{','.join(words)}]{tail}"
