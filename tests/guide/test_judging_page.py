"""The worked example of docs/judging.md, pasted as it stands: it prints what the page shows."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "judging.md"


def blocks():
    """The indented blocks of the section, in order."""
    section = PAGE.read_text().split("## An example from end to end\n")[1].split("\n## ")[0]
    found, lines = [], []
    for line in [*section.splitlines(), "end"]:
        if line.startswith("    ") or (lines and not line):
            lines.append(line)
        elif lines:
            found.append(textwrap.dedent("\n".join(lines)).strip("\n") + "\n")
            lines = []
    return found


def steady(text):
    """Without the run's id, which hangs on the versions that are installed."""
    return re.sub(r"run-[0-9a-f]{12}", "run-…", text)


@pytest.mark.browser
def test_the_example_prints_what_the_page_shows(tmp_path):
    files, commands, of_eval, grade, of_grade = blocks()
    *earlier, last = commands.splitlines()
    bin_ = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{bin_}:/usr/bin:/bin"}

    def paste(text):
        done = subprocess.run(
            ["bash", "-e", "-c", text],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return steady(done.stdout)

    paste(files)
    paste("\n".join(earlier))
    assert paste(last) == steady(of_eval)
    assert "points     80.0 (n 1)" in of_eval
    assert paste(grade.replace("\n", " ")) == steady(of_grade)
    assert "does not hold: it does not stand in the page at step 1" in of_grade
