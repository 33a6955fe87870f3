"""Builds the documentation as a site: `cargo xtask test --only documentation-site` puts it into `target/site`.

Readers of the repository find the pages where they are. This copies the pages and the files that they link to, with the same
relative paths, and Zensical makes the site from the copies. A broken link fails the build.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^\s*```")


def gather(pages, to):
    """Copies `pages` (paths relative to the root), and all files that they link to, to the folder `to`."""
    waiting, seen = list(pages), set()
    while waiting:
        page = waiting.pop()
        if page in seen:
            continue
        seen.add(page)
        target = to / page
        target.parent.mkdir(parents=True, exist_ok=True)
        if page.suffix != ".md":
            shutil.copy(ROOT / page, target)
            continue
        text, linked = with_links(page, (ROOT / page).read_text(encoding="utf-8"))
        target.write_text(text, encoding="utf-8")
        waiting += linked


def with_links(page, text):
    """The text of a page without links to folders, which a site cannot show, and the files that it links to."""
    linked, lines = [], []
    in_code = False

    def replacement(match):
        target = match[3].partition("#")[0]
        if not target or "://" in target:
            return match[0]
        file = (ROOT / page.parent / target).resolve()
        if file.is_dir():
            return match[2]
        linked.append(file.relative_to(ROOT))
        return match[0]

    for line in text.splitlines(keepends=True):
        in_code ^= bool(FENCE.match(line))
        lines.append(line if in_code else LINK.sub(replacement, line))
    return "".join(lines), linked


def main():
    site = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="shoal-site-") as folder:
        pages = Path(folder, "pages")
        gather([Path("README.md"), *(page.relative_to(ROOT) for page in ROOT.glob("docs/*.md"))], pages)
        settings = (HERE / "mkdocs.yml").read_text(encoding="utf-8")
        Path(folder, "mkdocs.yml").write_text(f"{settings}docs_dir: pages\nsite_dir: site\n", encoding="utf-8")
        program = Path(sys.executable).with_name("zensical")
        subprocess.run([program, "build", "--strict"], cwd=folder, check=True)
        shutil.rmtree(site, ignore_errors=True)
        shutil.copytree(Path(folder, "site"), site)
    print(f"{site}/index.html: {sum(1 for _ in site.rglob('*.html'))} pages")


if __name__ == "__main__":
    main()
