"""The sizes that attention is timed at."""

from mha_lab.errors import UserError

Shape = tuple[int, int, int, int]
"""N, L, E, H of a self-attention."""


def read_shapes(text: str) -> tuple[Shape, ...]:
    """Read shapes as they are written on the command line.

    Args:
        text: Like ``64x20x64x4,2x1024x256x8``.

    Raises:
        UserError: A shape is no four sizes, or no module has it.
    """
    shapes = []
    for word in text.split(","):
        sizes = [int(size) if size.isdecimal() else 0 for size in word.split("x")]
        if len(sizes) != 4 or min(sizes) < 1 or sizes[1] < 2 or sizes[2] % sizes[3]:
            raise UserError(
                f"shapes must be like 64x20x64x4 (batch x length x width x heads, length at least "
                f"2, width divisible by heads), separated by commas; got {word!r}"
            )
        shapes.append((sizes[0], sizes[1], sizes[2], sizes[3]))
    return tuple(shapes)
