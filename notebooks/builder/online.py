"""What a notebook needs outside of this repository: links to Colab and Binder, and the package.

The one setting is ``Repository`` under ``[project.urls]`` in pyproject.toml.
"""

from __future__ import annotations

import functools
import re
import tomllib
from pathlib import Path
from urllib.parse import quote

from builder.source import SourceError

PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
BRANCH = "main"
WORDS = {"en": "Run it online: ", "ko": "온라인에서 실행: ", "zh": "在线运行："}
INSTALL = """\
from importlib.util import find_spec

if not find_spec("gnnlab"):  # Colab
    get_ipython().run_line_magic("pip", "install --quiet git+{url}")"""


@functools.cache
def repository(pyproject: Path = PYPROJECT) -> str:
    """The address in pyproject.toml, on GitHub or anywhere else."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    url = project.get("urls", {}).get("Repository", "")
    if not re.fullmatch(r"https://[\w.:-]+(/[\w.~-]+)+/?", url):
        raise SourceError(
            f"{pyproject.name}: found Repository = {url!r} under [project.urls]; give the address"
            ' of the repository, as "https://github.com/OWNER/NAME" or on another host'
        )
    return url.removesuffix("/").removesuffix(".git")


def links(notebook: str, lang: str, url: str = "") -> str:
    """One line of Markdown for a notebook, named by its path in the repository.

    It is empty as long as pyproject.toml has a placeholder for the address. Colab opens notebooks
    of GitHub only, Binder those of any repository that it may read.
    """
    url = url or repository()
    if url.endswith("/OWNER/REPOSITORY"):
        return ""
    name = url.removeprefix("https://github.com/")
    colab = f"https://colab.research.google.com/github/{name}/blob/{BRANCH}/{notebook}"
    place = f"gh/{name}" if name != url else f"git/{quote(url, safe='')}"
    binder = f"https://mybinder.org/v2/{place}/{BRANCH}?urlpath=lab/tree/{notebook}"
    return WORDS[lang] + f"[Colab]({colab}) · " * (name != url) + f"[Binder]({binder})"


def install() -> str:
    """Code that installs gnnlab from the repository where it is missing, and else does nothing."""
    return INSTALL.format(url=repository())
