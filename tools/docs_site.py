"""Build the site with Zensical: gather its pages in build/pages, then build them strictly.

    python tools/docs_site.py            # into site/

README.md is the home page, and other files of the repository are pages, too. On GitHub and in an
editor links lead from file to file in the repository; here each is turned into the link between the
two pages. A link to a file without a page (source code, data) becomes plain text.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "build" / "pages"
"""The pages as Zensical reads them; `docs_dir` of mkdocs.yml."""
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
    files = {page: file for file, page in joining.items()}
    source = files.get(place, f"docs/{place}")

    def page_link(link: re.Match[str]) -> str:
        image, text, target = link.groups()
        path, hash_sign, anchor = target.partition("#")
        if not path or "://" in path or path.startswith("mailto:"):
            return link[0]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if file in joining:
            page = joining[file]
        elif file.startswith("docs/"):
            page = file.removeprefix("docs/")
        elif (ROOT / file).exists():
            return text
        else:
            return link[0]
        relative = posixpath.relpath(page, posixpath.dirname(place) or ".")
        return f"{image}[{text}]({relative}{hash_sign}{anchor})"

    parts = FENCE.split(markdown)
    for number, part in enumerate(parts):
        if not part.startswith("```"):
            parts[number] = LINK.sub(page_link, part)
    return "".join(parts)


def gather() -> None:
    """Write all pages and images into `PAGES`."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES)
    for file, place in all_joining().items():
        page = PAGES / place
        page.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, page)
    for page in PAGES.rglob("*.md"):
        place = page.relative_to(PAGES).as_posix()
        page.write_text(relinked(page.read_text(encoding="utf-8"), place), encoding="utf-8")


def missing_images() -> list[str]:
    """The images that a page shows and that are not there; Zensical does not look for them."""
    missing = []
    for page in sorted(PAGES.rglob("*.md")):
        for mark, _, target in LINK.findall(page.read_text(encoding="utf-8")):
            is_local = mark == "!" and "://" not in target
            if is_local and not (page.parent / target.partition("#")[0]).is_file():
                missing.append(f"{page.relative_to(PAGES)}: {target}")
    return missing


def pages_outside_navigation() -> list[str]:
    """The pages that mkdocs.yml does not name; Zensical builds them without a word."""
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1]
    pages_in_navigation = set(re.findall(r"([\w./-]+\.md)$", navigation, re.MULTILINE))
    pages = {page.relative_to(PAGES).as_posix() for page in PAGES.rglob("*.md")}
    return sorted(pages - pages_in_navigation)


def main() -> int:
    gather()
    problems = [f"no such image: {image}" for image in missing_images()]
    problems += [
        f"not in the navigation of mkdocs.yml: {page}" for page in pages_outside_navigation()
    ]
    if problems:
        print("\n".join(problems), file=sys.stderr)
        return 1
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    shutil.rmtree(ROOT / "site", ignore_errors=True)
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
