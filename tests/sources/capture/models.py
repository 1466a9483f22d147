"""What the recorder is held to: a model's own outputs, gradients and weights."""

import torch
from torch import nn

import mha_viz


def multihead(E=8, H=2, **options):
    """An ``nn.MultiheadAttention`` whose biases are not zero, in eval mode."""
    torch.manual_seed(0)
    module = nn.MultiheadAttention(E, H, **options)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module.eval()


def outcome(model, *inputs, gradients=True, **options):
    """The model's output and, with ``gradients``, those of inputs and parameters, as one flat list."""
    own = {id(x): x.clone().requires_grad_() if gradients and x.is_floating_point() else x for x in inputs}
    inputs = [own[id(x)] for x in inputs]  # what was one tensor stays one
    model.zero_grad()
    with torch.set_grad_enabled(gradients):
        output = model(*inputs, **options)
    output = output[0] if isinstance(output, tuple) else output
    if not gradients:
        return [output]
    output.square().sum().backward()
    return [output.detach(), *(x.grad for x in [*own.values(), *model.parameters()] if x.grad is not None)]


def recorded(model, *inputs, filters=None, gradients=True, **options):
    """The Recording of one call, which left output and gradients as they are without it, to the last bit."""
    torch.manual_seed(1)
    alone = outcome(model, *inputs, gradients=gradients, **options)
    torch.manual_seed(1)
    with mha_viz.record(model, **(filters or {})) as recording:
        watched = outcome(model, *inputs, gradients=gradients, **options)
    assert len(alone) == len(watched)
    assert all(torch.equal(a.nan_to_num(7), b.nan_to_num(7)) for a, b in zip(alone, watched, strict=True))
    return recording
