from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.factory.corpus.texts import of_strings, unit_ids, unit_names
from browseruse_bench.records.base import content_key

WRITTEN = st.text(st.characters(exclude_categories=("Cs",)), max_size=300)
PLAIN = st.text(st.sampled_from('a"\\\n\t\r\b\f\x00\x1f\x7f\u2028é漢🦦'), max_size=150)


@given(st.lists(WRITTEN | PLAIN, max_size=5))
def test_a_unit_is_the_content_key_of_its_text(texts):
    names = [content_key([text]) for text in texts]
    assert unit_names(of_strings(texts)) == names
    assert unit_ids(of_strings(texts)).tolist() == [int(name[:16], 16) for name in names]


def test_each_length_around_the_ends_of_blocks_is_right():
    texts = ["x" * n for n in range(200)]
    assert unit_names(of_strings(texts)) == [content_key([text]) for text in texts]
