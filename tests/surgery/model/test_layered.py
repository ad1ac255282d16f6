"""A layered table behaves like a dict, whatever is copied, set and deleted."""

from hypothesis import given
from hypothesis import strategies as st

from layerwise._tool.surgery.model.lookups import Layered

KEYS = st.sampled_from([f"k{i}" for i in range(12)])
STEPS = st.lists(st.tuples(st.sampled_from("sdc"), KEYS, st.integers()), max_size=30)


@given(st.dictionaries(KEYS, st.integers()), STEPS)
def test_a_layered_table_behaves_like_a_dict(base: dict[str, int], steps: list[tuple[str, str, int]]) -> None:
    table, plain, left = Layered(dict(base)), dict(base), []
    for step, key, value in steps:
        if step == "c":
            left.append((table, dict(plain)))
            table = table.copy()
        elif step == "s":
            table[key] = plain[key] = value
        else:
            assert table.pop(key, None) == plain.pop(key, None)
    for made, wanted in (*left, (table, plain)):
        assert dict(made) == wanted and len(made) == len(wanted) and made.keys() == wanted.keys()
        assert all((key in made) == (key in wanted) and made.get(key) == wanted.get(key) for key in ("k0", "none"))
