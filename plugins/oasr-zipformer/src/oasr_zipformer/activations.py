"""SwooshL and SwooshR (Yao et al., 2023, section 3.4): smooth, and with a slope that never vanishes."""

import torch
import torch.nn.functional as F


def swoosh_l(x: torch.Tensor) -> torch.Tensor:
    """log(1 + exp(x - 4)) - 0.08 x - 0.035, for what should be off most of the time."""
    return F.softplus(x - 4.0).sub_(x, alpha=0.08).sub_(0.035)


def swoosh_r(x: torch.Tensor) -> torch.Tensor:
    """log(1 + exp(x - 1)) - 0.08 x - 0.313261687, which passes through the origin."""
    return F.softplus(x - 1.0).sub_(x, alpha=0.08).sub_(0.313261687)
