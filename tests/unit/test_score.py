"""Cost models: weights, names, and what is none."""

from __future__ import annotations

import pytest

from cachegrind_bench.errors import UsageError
from cachegrind_bench.model.metrics import DEFAULT_MODEL, IR_MODEL, CostModel
from tests.unit.samples import VECTOR


@pytest.mark.parametrize(
    ("name", "score"),
    [
        ("l1+5ll+30ram", 3418),
        ("l1+5ll+35ram", 3683),
        ("ir", 1353),
        ("2l1+5ll+30ram", 3418 + 1778),
        ("0l1+0ll+1ram", 53),
        ("0l1+1ll+0ram", 10),
    ],
)
def test_the_reference_vector_scores_as_the_design_says(name: str, score: int) -> None:
    model = CostModel.parse(name)
    assert model.name == name
    assert model.score(VECTOR) == score


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (" L1+5LL+30RAM ", "l1+5ll+30ram"),
        ("1l1+05ll+030ram", "l1+5ll+30ram"),
        ("IR", "ir"),
        ("02l1+1ll+1ram", "2l1+1ll+1ram"),
    ],
)
def test_spellings_of_one_model_have_one_name(text: str, name: str) -> None:
    assert CostModel.parse(text).name == name


def test_the_default_is_the_formula_of_the_article() -> None:
    assert CostModel.parse("l1+5ll+30ram") == DEFAULT_MODEL
    assert CostModel.parse("ir") is IR_MODEL


@pytest.mark.parametrize(
    "text",
    [
        "",
        "l1",
        "l1+5ll+30ram+1",
        "l1+-5ll+30ram",
        "l1 + 5ll + 30ram",
        "l1+1234567ll+1ram",
    ],
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="is not a cost model") as caught:
        CostModel.parse(text)
    assert "l1+5ll+30ram" in (caught.value.hint or "")
