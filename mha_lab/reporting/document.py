"""What a report says, apart from how it is shown: Markdown and HTML are two views of this."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Text:
    """A paragraph; `words in backticks` are code. A ``warning`` is set apart from the rest."""

    text: str
    kind: Literal["plain", "warning"] = "plain"


@dataclass(frozen=True)
class Table:
    """Rows of text under headings.

    Attributes:
        columns: the headings.
        rows: as many cells as columns in each.
        caption: what it shows.
        numeric: how many of the last columns hold numbers, which are set to the right.
        stacked: whether what follows ± stands below, because there are many columns.
        folded: whether it is shown only on demand where that is possible.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str
    numeric: int = 0
    stacked: bool = False
    folded: bool = False


@dataclass(frozen=True)
class Picture:
    """A figure as two files of one drawing.

    Attributes:
        name: the file's name without its ending.
        png: for files.
        svg: for the page: an ``<svg>`` element whose colours follow the page's.
        caption: what it shows.
        alt: the same for those who do not see it.
        width: its natural width in CSS pixels.
        is_wide: whether it keeps that width, to be scrolled on a narrow screen.
    """

    name: str
    png: bytes
    svg: str
    caption: str
    alt: str
    width: int
    is_wide: bool


@dataclass(frozen=True)
class Figures:
    """Pictures that stand side by side where there is room."""

    pictures: Sequence[Picture]


@dataclass(frozen=True)
class Attached:
    """A page of its own beside the report.

    Attributes:
        name: the file's name.
        html: the page.
        text: what it shows.
    """

    name: str
    html: str
    text: str


Block = Text | Table | Figures | Attached


@dataclass(frozen=True)
class Section:
    """A heading and what is below it."""

    title: str
    blocks: list[Block] = field(default_factory=list)

    @property
    def anchor(self) -> str:
        """The name that a link to it has."""
        return self.title.lower().replace(" ", "-")


@dataclass(frozen=True)
class Document:
    """A report.

    Attributes:
        title: its name.
        subtitle: one line: how many runs, which groups and seeds.
        lead: what comes first: the findings and the warnings.
        sections: the rest.
        colophon: how it was made and what its words mean.
    """

    title: str
    subtitle: str
    lead: list[Block]
    sections: list[Section]
    colophon: list[str]

    def tables(self) -> list[Table]:
        """Every table, in order."""
        return [block for block in self.blocks() if isinstance(block, Table)]

    def pictures(self) -> list[Picture]:
        """Every picture, in order."""
        return [
            one for block in self.blocks() if isinstance(block, Figures) for one in block.pictures
        ]

    def attached(self) -> list[Attached]:
        """Every page beside the report."""
        return [block for block in self.blocks() if isinstance(block, Attached)]

    def blocks(self) -> list[Block]:
        """Every block, in order."""
        return [*self.lead, *(block for section in self.sections for block in section.blocks)]
