"""The tutorial's evaluation and checklist as checks: each says what it compared, by how much it was off, and what that means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mha_viz.analysis.validation import agreement, baselines, contract, gradients, inputs, weights
from mha_viz.analysis.validation.check import CANNOT, FAIL, PASS, Check
from mha_viz.analysis.validation.contract import contract_text
from mha_viz.analysis.validation.subject import Subject

if TYPE_CHECKING:
    from mha_viz.core.trace import Trace


GROUPS = {
    "Input": (inputs.input_shape, inputs.input_values, inputs.input_range, inputs.order),
    "Shapes and rows": (contract.shapes, weights.row_sums, weights.mean_weights, weights.no_key),
    "Masks": (
        weights.padding_weight,
        weights.padding_content,
        weights.padding_length,
        weights.mask_weight,
        weights.mask_content,
        weights.causality,
    ),
    "Agreement": (
        agreement.numpy_reference,
        agreement.layouts,
        agreement.items,
        agreement.item_alone,
        agreement.no_weights,
        agreement.fast_path,
        agreement.decoding,
    ),
    "Evaluation mode": (agreement.dropout_off, agreement.deterministic),
    "Gradients": (gradients.gradcheck, gradients.gradients_finite, gradients.gradients_padding, gradients.gradients_heads),
    "Baselines": (baselines.uniform, baselines.one_head),
}
QUESTIONS = {question.name: question for group in GROUPS.values() for question in group}

__all__ = ["CANNOT", "FAIL", "GROUPS", "PASS", "QUESTIONS", "Check", "Subject", "checks", "contract_text"]


def checks(subject: Subject | Trace) -> Iterator[Check]:
    """A generator of the Checks of a Subject, or of a Trace: each is done when it is asked for, so that one can stop in between."""
    subject = subject if isinstance(subject, Subject) else Subject(subject)
    for question in QUESTIONS.values():
        yield question.ask(subject)
