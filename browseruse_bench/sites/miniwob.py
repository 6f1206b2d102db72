"""MiniWoB++: the pages of the PyPI package `miniwob`, one seeded episode per page load."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
from pathlib import Path

from browseruse_bench.errors import SiteError
from browseruse_bench.sites.base import Site
from browseruse_bench.sites.static import StaticServer

HOST = "miniwob.test"
PACKAGE = "miniwob"
VERSION = "1.1.0"
"""What a seed gives depends on the pages, so the tasks hold for this version only."""

# The core's timer ends an episode after 10 s or so and takes no more than 2**31 ms.
EPISODE_LIMIT_MS = 24 * 3600 * 1000

# Appended to the pages' own core/core.js, so that it runs before the script of any page.
#
# - `?seed=` (else the site's seed) decides the episode: the random numbers start anew right
#   before it, whatever was drawn while the page loaded.
# - The first episode starts by itself, without the click on START.
# - Pages set the time limit themselves; here that has no effect.
# - The core shows START again when an episode has ended, and a click on it would begin another
#   one. One load is one episode: the cover says FINISHED and does nothing, and the result that
#   the probe reads is that of the first episode.
EPISODE_SCRIPT = """
;(function () {
  'use strict';
  var seed = core.QueryString.seed || %(seed)s;
  var show = core.startEpisode, end = core.endEpisode;
  var started = false, result = {done: false, raw_reward: 0};
  Math.seedrandom(seed);
  Object.defineProperty(core, 'EPISODE_MAX_TIME', {
    get: function () { return %(limit)d; }, set: function () {}
  });
  core.startEpisode = function () {
    show();
    if (started) {
      core.cover_div.onclick = null;
      core.cover_div.textContent = 'FINISHED';
      return;
    }
    started = true;
    Math.seedrandom(seed);
    core.startEpisodeReal();
  };
  core.endEpisode = function (reward, proportional, reason) {
    end(reward, proportional, reason);
    if (!result.done && WOB_DONE_GLOBAL) {
      result = {done: true, raw_reward: WOB_RAW_REWARD_GLOBAL};
    }
  };
  Object.defineProperty(window, 'firstEpisode', {value: function () {
    return {page: location.host + location.pathname, seed: seed,
            done: result.done, raw_reward: result.raw_reward};
  }});
})();
"""


class MiniwobSite(Site):
    """The package's files as they are, but for the script that is added to core/core.js.

    Everything happens in the browser, so no visitor can see what another one did. The rewards
    live in the page: an agent that may run scripts of its own can write them.
    """

    stateful = False

    def __init__(self) -> None:
        """Start nothing yet."""
        self._server: StaticServer | None = None

    def start(self, directory: Path, seed: int) -> tuple[str, int]:
        """Serve the package's pages; `seed` is that of addresses without `?seed=`."""
        script = EPISODE_SCRIPT % {"seed": json.dumps(str(seed)), "limit": EPISODE_LIMIT_MS}

        def change(name: str, content: bytes) -> bytes:
            return content + script.encode() if name == "core/core.js" else content

        self._server = StaticServer(pages(), change)
        return self._server.start()

    def stop(self) -> None:
        """Stop serving."""
        if self._server is not None:
            self._server.stop()


def pages() -> Path:
    """The folder `html` of the installed package, found without importing it.

    Importing `miniwob` would load selenium and gymnasium.

    Raises:
        SiteError: the package is missing, has another version or lacks its pages.
    """
    spec = importlib.util.find_spec(PACKAGE)
    try:
        found = importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        found = "none"
    if spec is None or spec.origin is None or found != VERSION:
        raise SiteError(
            f"{HOST}: needs {PACKAGE} {VERSION}, found {found}; "
            f"install it with: pip install '{PACKAGE}=={VERSION}'"
        )
    folder = Path(spec.origin).parent / "html"
    if not (folder / "core" / "core.js").is_file():
        raise SiteError(f"{HOST}: {folder} holds no core/core.js; reinstall {PACKAGE}")
    return folder
