"""The prompt that a workspace labels its tasks with."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.factory.search.figures import Figures
from browseruse_bench.factory.search.labeller import Prompt, shipped
from browseruse_bench.records.base import Record
from browseruse_bench.store.files import read_json, write_json

FOLDER = "search"
FILE = "chosen.json"


class Chosen(Record):
    """chosen.json: which version, by which search, and how well it did."""

    prompt: Prompt
    search: str
    """Id of the search."""
    model: str
    """Label of the model for which it was chosen."""
    model_key: str
    decision: str
    """What was shown of it, in words."""
    selection: Figures
    validation: Figures
    """Of labels by which nothing was chosen."""
    among: tuple[str, ...]
    """Texts of all versions that it was chosen from."""
    at: str


def search_folder(workspace: Path) -> Path:
    """Where a workspace keeps its searches."""
    return workspace / "restricted" / FOLDER


def read_chosen(workspace: Path) -> Chosen | None:
    """What was chosen; None: nothing yet.

    Raises:
        DataError: the file is damaged.
    """
    path = search_folder(workspace) / FILE
    if not path.exists():
        return None
    try:
        return Chosen.model_validate(read_json(path))
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise DataError(
            f"{path}: {place}: {problem['msg']}; restore it, or remove it and search again"
        ) from error


def write_chosen(workspace: Path, chosen: Chosen) -> None:
    """Put it in place of what was chosen before."""
    # With what is None: some of the figures have no default.
    write_json(search_folder(workspace) / FILE, chosen.model_dump(mode="json"))


def prompt_of(workspace: Path) -> Prompt:
    """The chosen prompt, or the shipped one."""
    chosen = read_chosen(workspace)
    return shipped() if chosen is None else chosen.prompt


def named_prompt(workspace: Path, name: str) -> Prompt:
    """The prompt that is called `chosen`, `shipped`, or by a file that holds it.

    Raises:
        ConfigError: there is no such file.
        DataError: it is not UTF-8, or empty.
    """
    if name == "shipped":
        return shipped()
    if name == "chosen":
        return prompt_of(workspace)
    try:
        text = Path(name).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigError(f"--prompt {name}: chosen, shipped, or a file: {error}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: not UTF-8 (byte {error.start})") from error
    if not text:
        raise DataError(f"{name}: it is empty, and so no prompt")
    return Prompt(text=text)
