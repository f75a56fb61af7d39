"""How much a YAML file says: one that may be a stranger's is measured before it is unfolded.

An alias stands for all that its anchor holds. A file of a few lines, each of aliases to the line
above, would fill any memory (https://en.wikipedia.org/wiki/Billion_laughs_attack).
"""

import yaml

MOST = 100_000
"""Values in a file; the config of a run has about a hundred."""

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def check_size(text: str) -> None:
    """Refuse what is endless, or of more values than any config has.

    Args:
        text: of a YAML file; parsed as events, of which none is unfolded.

    Raises:
        ValueError: it is too large.
        yaml.YAMLError: it is no YAML.
    """
    sizes: dict[str, int] = {}  # by anchor; 0 while its end is not read
    is_open: list[tuple[str | None, int]] = []
    total = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            is_open.append((event.anchor, total))
            sizes[event.anchor or ""] = 0
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = is_open.pop()
            sizes[anchor or ""] = total - before
        elif isinstance(event, yaml.ScalarEvent):
            total += 1
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor in (anchor for anchor, _ in is_open):
                raise ValueError(f"the alias *{event.anchor} holds itself")
            total += sizes.get(event.anchor or "", 1)
        if total > MOST or len(is_open) > MOST:
            raise ValueError(f"it holds more than {MOST:,} values, which no config does")
