"""A hook of mkdocs: pages from outside docs/ join the site, and links between all of them hold.

README.md is the home page. On GitHub and in an editor links lead from file to file in the
repository; here each is turned into the link between the two pages. A link to a file that has no
page (source code, data) becomes plain text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
JOINING = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "SECURITY.md": "SECURITY.md",
    "CODE_OF_CONDUCT.md": "CODE_OF_CONDUCT.md",
    "reproduction/README.md": "reproduction/index.md",
    "benchmarks/README.md": "benchmarks/index.md",
    "benchmarks/lewidi2023/README.md": "benchmarks/lewidi2023/index.md",
    "benchmarks/lewidi2023/RESULTS.md": "benchmarks/lewidi2023/RESULTS.md",
    "benchmarks/lewidi2025/README.md": "benchmarks/lewidi2025/index.md",
    "benchmarks/lewidi2025/RESULTS.md": "benchmarks/lewidi2025/RESULTS.md",
}
"""Files of the repository, and where they stand on the site."""
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that live elsewhere, and the examples' own."""
    for file, place in all_joining().items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / file)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Turn links between files of the repository into links between pages."""
    return relinked(markdown, page.file.src_uri)


def all_joining() -> dict[str, str]:
    """`JOINING`, with a page per example."""
    examples = {
        f"examples/{folder.name}/README.md": f"examples/{folder.name}.md"
        for folder in sorted((ROOT / "examples").glob("*"))
        if (folder / "README.md").is_file()
    }
    return {**JOINING, "examples/README.md": "examples/index.md", **examples}


def relinked(markdown: str, place: str) -> str:
    """The text of the page at this place of the site, its links leading to pages of the site."""
    joining = all_joining()
    home = {where: file for file, where in joining.items()}
    source = home.get(place, f"docs/{place}")

    def turned(found: re.Match[str]) -> str:
        image, text, target = found.groups()
        path, hash_, anchor = target.partition("#")
        if not path or "://" in path or path.startswith("mailto:"):
            return found[0]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if file in joining:
            there = joining[file]
        elif file.startswith("docs/"):
            there = file.removeprefix("docs/")
        elif (ROOT / file).exists():
            return text
        else:
            return found[0]
        link = posixpath.relpath(there, posixpath.dirname(place) or ".")
        return f"{image}[{text}]({link}{hash_}{anchor})"

    parts = FENCE.split(markdown)
    return "".join(part if part.startswith("```") else LINK.sub(turned, part) for part in parts)
