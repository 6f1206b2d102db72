"""Clicks on what a scrolling box inside the page has out of sight."""

import pytest

from tests.agents.test_oracle import play

__all__ = ["play"]

pytestmark = pytest.mark.browser

BOX = """<div id=box style="height:100px;width:200px;overflow:auto">
  <button>Near</button><div style="height:900px;width:900px"></div>
  <button style="margin-left:700px" onclick="document.title='clicked'">Far</button></div>
  <p>below the box</p>"""


async def test_an_element_out_of_sight_in_a_box_is_scrolled_to_and_clicked(site, play):
    site.pages["/"] = BOX
    end = await play(
        {"navigate": site.url + "/"},
        {"click": {"text": "Far"}},
        {"extract": {"css": "title", "as": "t"}},
        {"done": "{t}"},
    )
    assert end.report.answer == "clicked"


async def test_a_click_on_what_is_in_sight_does_not_scroll_its_box(site, play):
    site.pages["/"] = BOX + "<script>box.onscroll = () => { document.title = 'moved' }</script>"
    end = await play(
        {"navigate": site.url + "/"},
        {"click": {"text": "Near"}},
        {"extract": {"css": "title", "as": "t"}},
        {"done": "{t}"},
    )
    assert end.report.answer != "moved"
