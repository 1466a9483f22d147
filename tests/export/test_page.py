"""A figure as a page of its own, in a browser: of its size, and answering the pointer."""

from mha_viz import Settings, View, synthetic
from mha_viz.export.page import figure_page
from mha_viz.figures.heads import spec

TRACE = synthetic(Settings(embed_dim=8, num_heads=2, batch_size=1, seq_len=5))
CELL = """() => {
    const picture = document.querySelector(".main-svg").getBoundingClientRect(), { width, _plots } = figure._fullLayout;
    const { xaxis, yaxis } = _plots.x2y2, times = picture.width / width;
    return [picture.left + times * (xaxis._offset + xaxis.c2p(1)), picture.top + times * (yaxis._offset + yaxis.c2p(3)), picture.width];
}"""


def test_a_page_of_another_size_answers_the_pointer_where_its_cells_are_seen(chromium, tmp_path):
    figure = spec(TRACE, View(arrangement="one"), width=800)
    (tmp_path / "page.html").write_text(figure_page(figure, "title", "alt", "caption", 0.75))
    page = chromium.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_selector(".main-svg")
    x, y, width = page.evaluate(CELL)
    assert round(width) == 600
    page.mouse.move(x, y)
    assert "query 3key 1weight" in page.wait_for_selector(".hovertext").text_content()
    page.close()
