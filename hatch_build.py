"""Put the commit from which a wheel is built into it, for ``gnnlab --version``."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitHook(BuildHookInterface):
    """Write the file gnnlab/_commit of a wheel or of an archive of the sources."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Ask git, in a checkout; an archive of the sources has the file already."""
        root = Path(self.root)
        if version == "editable" or not (root / ".git").exists():
            return
        command = ["git", "-C", str(root), "describe", "--always", "--dirty=, changed"]
        command += ["--abbrev=40", "--exclude=*"]
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except OSError:  # no git
            return
        if done.returncode == 0:
            file = Path(self.directory, ".commit")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(done.stdout, encoding="utf8")
            build_data["force_include"][str(file)] = "gnnlab/_commit"
