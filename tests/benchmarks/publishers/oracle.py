"""Where the public sets are that these tests reproduce figures of."""

import json
import os
from pathlib import Path

import pytest

_DATA = os.environ.get("BUBENCH_ORACLE_DATA")
PUBLIC = Path(_DATA or "")
needed = pytest.mark.skipif(
    _DATA is None, reason="BUBENCH_ORACLE_DATA names no folder of public sets"
)


def json_lines(path):
    return [json.loads(line) for line in (PUBLIC / path).read_text().split("\n") if line.strip()]
