"""What a notebook needs outside of this repository: links to Colab and Binder, and the package.

The one setting is ``Repository`` under ``[project.urls]`` in pyproject.toml.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from builder.source import SourceError

BRANCH = "main"
WORDS = {"en": "Run it online: ", "ko": "온라인에서 실행: ", "zh": "在线运行："}
INSTALL = """\
from importlib.util import find_spec

if not find_spec("gnnlab"):  # Colab
    get_ipython().run_line_magic("pip", "install --quiet git+{url}")"""


def repository(pyproject: Path) -> str:
    """The address in pyproject.toml; Colab and this form of Binder's links need one on GitHub."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    url = project.get("urls", {}).get("Repository", "")
    if not re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+", url):
        raise SourceError(
            f"{pyproject.name}: found Repository = {url!r} under [project.urls]; give the address"
            ' of the repository, as "https://github.com/OWNER/NAME"'
        )
    return url


URL = repository(Path(__file__).resolve().parents[2] / "pyproject.toml")


def links(notebook: str, lang: str) -> str:
    """One line of Markdown for a notebook, named by its path in the repository."""
    name = URL.removeprefix("https://github.com/")
    colab = f"https://colab.research.google.com/github/{name}/blob/{BRANCH}/{notebook}"
    binder = f"https://mybinder.org/v2/gh/{name}/{BRANCH}?urlpath=lab/tree/{notebook}"
    return f"{WORDS[lang]}[Colab]({colab}) · [Binder]({binder})"


def install() -> str:
    """Code that installs gnnlab from the repository where it is missing, and else does nothing."""
    return INSTALL.format(url=URL)
