"""data_info.json: what a benchmark folder says about itself."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from browseruse_bench.records.base import Record


class FieldSource(Record):
    """Where a field of a task comes from in a row of the publisher's file."""

    name: str
    """The publisher's name of the field."""
    convert: Literal["string", "boolean"] | None = None
    """`string` takes numbers as text (integer ids); `boolean` takes true/false, 0/1, yes/no."""


class Probe(Record):
    """A script that the harness runs in the final page; its result is evidence."""

    script: str
    """A JavaScript expression whose value is JSON; promises are awaited."""
    world: Literal["isolated", "page"] = "isolated"
    """`page` reads the page's own variables, which the page (and an agent's script) can write."""


class DataInfo(Record):
    """The metadata of a benchmark folder. Publishers' own fields are kept."""

    model_config = ConfigDict(extra="allow")

    name: str | None = None
    description: str = ""
    default_split: str = "All"
    split: dict[str, str] = Field(min_length=1)
    """Split name -> file, relative to the folder's data/."""
    revision: str | None = None
    """Declared by the publisher; without it the tasks' content is the revision."""
    fields: dict[str, str | FieldSource] = {}
    """Task field -> the publisher's field. Fields that are not named keep their names."""
    sites: dict[str, str] = {}
    """Host name -> "module:Site", a server that the benchmark brings along."""
    network: Literal["sites", "public"] | None = None
    """`sites` fences the browser in; default: `sites` where sites are declared."""
    probes: dict[str, Probe] = {}
    success_at: float = Field(default=100, gt=0, le=100)
    """Points from which a graded attempt counts as a success."""
    protocol: str | None = None
    """Name of the grading protocol; results of unlike protocols are never ranked together."""
    exclude: tuple[str, ...] = ()
    """Task ids that are listed but never selected (known to be broken)."""
    pull: str | None = None
    """Where the data can be had, for a folder whose data is not in it."""
    rubrics: str | None = None
    """Whose rubrics the rows bring along: a publisher's name, or "module:function"."""
