"""A second solver for each task: plain Python on tokens, slow and obvious, from the papers' words.

Each takes the source's tokens and gives the target's; "_" stands where nothing is asked.
"""

from collections.abc import Callable

Solver = Callable[[list[str]], list[str]]


def copy(source: list[str]) -> list[str]:
    return list(source)


def duplicate_string(source: list[str]) -> list[str]:
    return source + source


def reverse(source: list[str]) -> list[str]:
    return source[::-1]


def odds_first(source: list[str]) -> list[str]:
    places = enumerate(source, start=1)
    odd, even = [], []
    for place, symbol in places:
        (odd if place % 2 == 1 else even).append(symbol)
    return odd + even


def _after(gram: list[str], text: list[str]) -> list[str]:
    for start in range(len(text) - len(gram) + 1):
        if text[start : start + len(gram)] == gram:
            return text[start + len(gram) :]
    raise AssertionError(f"{gram} is not in {text}")


def prefix_ngram(source: list[str]) -> list[str]:
    bar = source.index("|")
    return _after(source[:bar], source[bar + 1 :])


def suffix_ngram(source: list[str]) -> list[str]:
    bar = source.index("|")
    return _after(source[bar + 1 :], source[:bar])


def sort(source: list[str]) -> list[str]:
    left, result = list(source), []
    while left:
        least = min(left, key=int)
        left.remove(least)
        result.append(least)
    return result


def even_pairs(source: list[str]) -> list[str]:
    text = "".join(source)
    pairs = sum(text[i : i + 2] in ("01", "10") for i in range(len(text)))
    return [str(pairs % 2)]


def parity_check(source: list[str]) -> list[str]:
    return ["1" if source.count("1") % 2 else "0"]


def cycle_navigation(source: list[str]) -> list[str]:
    place = 0
    for step in source:
        place += int(step)
        if place == 5:
            place = 0
        if place == -1:
            place = 4
    return [str(place)]


def arithmetic(source: list[str]) -> list[str]:
    return [str(eval("".join(source)) % 5)]


def stack_manipulation(source: list[str]) -> list[str]:
    stack: list[str] = []
    for token in source:
        if token == "POP":
            if stack:
                stack.pop()
        else:
            stack.append(token[-1])
    return list(reversed(stack))


def solve_equation(source: list[str]) -> list[str]:
    if len(source) < 3:
        assert set(source) == {"0"}
        return ["0"]
    left, right = "".join(source).split("=")
    found = [x for x in "01234" if eval(left.replace("x", x)) % 5 == int(right)]
    assert len(found) == 1, f"{source} has the solutions {found}"
    return found


def missing_duplicate(source: list[str]) -> list[str]:
    if source == ["1"]:
        return ["1"]
    text = [token for token in source if token != "_"]
    half = len(text) // 2
    for bit in "01":
        filled = [bit if token == "?" else token for token in text]
        if filled[:half] == filled[half:]:
            return [bit]
    raise AssertionError(f"{source} is no duplicate")


def _number(digits: list[str]) -> int:
    """A little-endian number."""
    return int("".join(reversed(digits)), 2)


def _digits(number: int) -> list[str]:
    return list(reversed(f"{number:b}"))


def binary_addition(source: list[str]) -> list[str]:
    if "+" not in source:
        return _digits(_number(source))
    plus = source.index("+")
    assert min(_number(source[:plus]), _number(source[plus + 1 :])) > 0
    return _digits(_number(source[:plus]) + _number(source[plus + 1 :]))


def binary_multiplication(source: list[str]) -> list[str]:
    if "*" not in source:
        return ["0"] * (len(source) - 1)
    times = source.index("*")
    return _digits(_number(source[:times]) * _number(source[times + 1 :]))


def compute_sqrt(source: list[str]) -> list[str]:
    number = int("".join(source), 2)
    assert number > 0
    root, step = 0, 1 << len(source)
    while step:  # the largest root whose square is not above the number, bit by bit
        if (root + step) ** 2 <= number:
            root += step
        step //= 2
    return list(f"{root:b}".zfill(-(-len(source) // 2)))


def mqar(source: list[str]) -> list[str]:
    pairs = min(4, len(source) // 4)
    values = {source[2 * i]: source[2 * i + 1] for i in range(pairs)}
    assert len(values) == pairs
    answers = ["_"] * (2 * pairs)
    answers += [values.get(token, "_") for token in source[2 * pairs :]]
    asked = source[2 * pairs :: 2]
    assert set(values) <= set(asked), "each key stands again"
    return answers


def induction(source: list[str]) -> list[str]:
    answers = []
    for place, token in enumerate(source):
        before = [i for i in range(place) if source[i] == token]
        answers.append(source[before[-1] + 1] if before else "_")
    return answers


def selective_copy(source: list[str]) -> list[str]:
    return [token for token in source if token != "0"]


def key_value(source: list[str]) -> list[str]:
    if len(source) < 4:
        return []
    pairs = source[: source.index("?")]
    book = dict(zip(pairs[::2], pairs[1::2], strict=True))
    return [book[source[-1]]]


def majority(source: list[str]) -> list[str]:
    answers = []
    for end in range(1, len(source) + 1):
        ones, zeros = source[:end].count("1"), source[:end].count("0")
        answers.append("_" if ones == zeros else "1" if ones > zeros else "0")
    return answers


def local_count(source: list[str]) -> list[str]:
    return [
        str(source[max(0, place - 3) : place + 1].count(token))
        for place, token in enumerate(source)
    ]


def flip_flop(source: list[str]) -> list[str]:
    answers, memory = [], ""
    for place, token in enumerate(source):
        answers.append("_")
        before = source[place - 1] if place % 2 else ""
        if before == "w":
            memory = token
        if before == "r":
            assert token == "?"
            answers[-1] = memory
    return answers


SOLVERS: dict[str, Solver] = {
    "copy": copy,
    "unique_copy": copy,
    "repeated_copy": copy,
    "duplicate_string": duplicate_string,
    "reverse": reverse,
    "odds_first": odds_first,
    "prefix_ngram": prefix_ngram,
    "suffix_ngram": suffix_ngram,
    "sort": sort,
    "unique_sort": sort,
    "mingpt_sort": sort,
    "even_pairs": even_pairs,
    "parity_check": parity_check,
    "cycle_navigation": cycle_navigation,
    "modular_arithmetic": arithmetic,
    "modular_arithmetic_brackets": arithmetic,
    "stack_manipulation": stack_manipulation,
    "solve_equation": solve_equation,
    "missing_duplicate": missing_duplicate,
    "binary_addition": binary_addition,
    "binary_multiplication": binary_multiplication,
    "compute_sqrt": compute_sqrt,
    "mqar": mqar,
    "induction": induction,
    "selective_copy": selective_copy,
    "key_value": key_value,
    "majority": majority,
    "local_count": local_count,
    "flip_flop": flip_flop,
}
