"""How long the vectors are that attention adds up: a large weight on a short vector brings little.

Products are PyTorch's and not NumPy's, whose threads spin against each other where cores are shared: 0.3 s a layer in place of 3 ms.
"""


def lengths(vectors, out_weight):
    """[H, R] float64: ‖x · Wᴼ_h‖ of vectors x [H, R, D] of each head, with ``out_weight`` Wᴼ [E, H·D], the output projection's.

    As √(x G xᵀ) with G = Wᴼ_hᵀ Wᴼ_h [D, D], which takes no memory for the vectors of length E themselves.
    """
    import torch

    x, W = (torch.tensor(array, dtype=torch.float64) for array in (vectors, out_weight))
    W = W.unflatten(1, (len(x), -1)).transpose(0, 1)  # [H, E, D]
    return ((x @ (W.mT @ W)) * x).sum(dim=-1).clamp(min=0).sqrt().numpy()  # [H, R]


def value_lengths(trace, item):
    """[H, S] float64: ‖v_j · Wᴼ_h‖, how long what each key would add to the output is at a weight of 1. Needs v and Wᴼ.

    f(x) of Kobayashi et al., Attention Is Not Only a Weight: Analyzing Transformers with Vector Norms, 2020, equation 4: the bias of
    the value projection is in it, that of the output projection belongs to no head and is not.
    """
    return lengths(trace.v[item], trace.out_proj[0])


def head_outputs(trace, item):
    """[H, L, D]: what each head puts together, with dropout left out: where there is some, the probabilities times v."""
    import torch

    if trace.has("head_outputs", "dropped") and trace.dropped is None:
        return trace.head_outputs[item]  # of a head that was put off, what is left of it
    return (torch.tensor(trace.probabilities[item]) @ torch.tensor(trace.v[item])).numpy()  # [H, L, D]


def why_no_norms(trace):
    """Why lengths of vectors are not known of this Trace, in a sentence without its full stop; None where they are."""
    if not trace.has("v"):
        return "the values v are not known, only weights"
    return "the output projection Wᴼ is not known" if trace.out_proj is None else None
