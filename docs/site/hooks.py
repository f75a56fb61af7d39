"""What mkdocs asks while it builds the site: the menu, the files, the links, and a last check."""

import os
import re
from pathlib import Path
from typing import Any

import links
import pages
import tables
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files


def on_config(config: Any) -> Any:
    """Complete the menu: pages that it does not name, the findings, the reference."""
    findings = "docs/findings.md"
    named = f"{config.nav} {findings}"
    guide = next(entry["Guide"] for entry in config.nav if "Guide" in entry)
    guide += [f"docs/{file.name}" for file in sorted(Path(config.docs_dir).glob("*.md"))
              if file.name not in named]  # fmt: skip
    experiments = sorted(pages.ROOT.glob("experiments/*/README.md"))
    reference = [f"{pages.PACKAGE}/{room}/index.md" for room in pages.rooms_of()]
    config.nav += [
        {
            "Findings": [
                findings,
                *(file.relative_to(pages.ROOT).as_posix() for file in experiments),
            ]
        },
        {"Reference": [f"{pages.PACKAGE}/index.md", *reference]},
    ]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Take the repository's files instead of the folder's; the theme's stay."""
    kept = [file for file in files if not str(file.abs_src_path).startswith(config.docs_dir)]
    for place, what in pages.site().items():
        given = {"content": what} if isinstance(what, str) else {"abs_src_path": str(what)}
        kept.append(File.generated(config, place, **given))
    return Files(kept)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links to folders, notebooks and code to the pages that show them."""
    return links.repointed(markdown, pages.ROOT / page.file.src_uri)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Give tables what they need, and reStructuredText of docstrings its meaning."""
    html = tables.readable(html)
    if not page.file.src_uri.startswith(f"{pages.PACKAGE}/"):
        return html
    parts = re.split(r"(<pre.*?</pre>)", html, flags=re.DOTALL)
    for number in range(0, len(parts), 2):
        text = re.sub(r":\w+:(?=<code>)", "", parts[number])
        text = re.sub(r"(<p>)?\.\. \[(\d+)\] ", lambda m: f"{m[1] or '<br>'}[{m[2]}] ", text)
        parts[number] = re.sub(r"\[(\d+)\]_", r"[\1]", text)
    return "".join(parts)


def on_post_page(output: str, **_: Any) -> str:
    """Name the theme's search window for those who do not see it."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')


def on_post_build(config: Any) -> None:
    """Look at what was written, as a browser without a network would."""
    faults = links.faults(Path(config.site_dir))
    if faults:
        raise PluginError(
            f"{len(faults)} faults in the site:" + os.linesep + os.linesep.join(faults)
        )
