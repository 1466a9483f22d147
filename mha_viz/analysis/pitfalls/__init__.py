"""Pitfalls: experiments that show a mistake, why it happens, how to avoid it, and a check that catches it."""

from mha_viz.analysis.pitfalls.basics import (
    averaged_heads,
    batch_first_or_sequence_first,
    heads_split_by_reshape,
    heads_that_do_not_divide,
)
from mha_viz.analysis.pitfalls.corners import top_left_and_bottom_right, window_off_by_one
from mha_viz.analysis.pitfalls.masks import (
    causal_hint_without_mask,
    float_mask_of_zeros_and_ones,
    head_masks_in_wrong_order,
    ones_for_keep,
    true_means_the_opposite,
)
from mha_viz.analysis.pitfalls.nothing_left import causal_with_left_padding, every_key_masked, one_bad_row_and_all_gradients
from mha_viz.analysis.pitfalls.pitfall import (
    SYMPTOMS,
    Bench,
    Experiment,
    Knob,
    Map,
    Number,
    Pitfall,
    Version,
    check_width,
    pasted,
    why_no_bench,
)
from mha_viz.analysis.pitfalls.reading import attention_is_not_explanation, dropout_in_the_weights, padded_queries_in_a_mean
from mha_viz.analysis.pitfalls.softmax import (
    half_precision_fill,
    softmax_over_the_wrong_axis,
    softmax_twice,
    softmax_without_its_shift,
    wrong_scale,
)

PITFALLS = {  # by name, in the order in which they are told
    pitfall.name: pitfall
    for pitfall in (
        heads_that_do_not_divide,
        batch_first_or_sequence_first,
        averaged_heads,
        true_means_the_opposite,
        float_mask_of_zeros_and_ones,
        ones_for_keep,
        head_masks_in_wrong_order,
        every_key_masked,
        causal_with_left_padding,
        one_bad_row_and_all_gradients,
        dropout_in_the_weights,
        causal_hint_without_mask,
        top_left_and_bottom_right,
        window_off_by_one,
        softmax_over_the_wrong_axis,
        softmax_twice,
        softmax_without_its_shift,
        wrong_scale,
        heads_split_by_reshape,
        half_precision_fill,
        padded_queries_in_a_mean,
        attention_is_not_explanation,
    )
}

__all__ = [
    "PITFALLS",
    "SYMPTOMS",
    "Bench",
    "Experiment",
    "Knob",
    "Map",
    "Number",
    "Pitfall",
    "Version",
    "check_width",
    "pasted",
    "why_no_bench",
]
