"""Special functions: to 1e-5 in float32 and 1e-7 in float64, on the whole line where PyTorch is defined."""
import math

import pytest
import torch

from test_pointwise import Table

special = torch.special


def line(dtype):
    small = torch.tensor([0.0, 1e-5, 1e-3, 0.1, 0.3, 0.5, 0.9, 1.0, 1.4, 1.46163, 2.0, 2.3, 3.0, 4.5, 6.0, 7.9, 8.1, 11.9, 12.1, 15.0, 19.9, 20.1, 30.0])
    return torch.cat([small, -small[1:], torch.tensor([math.inf, -math.inf, math.nan])]).to(dtype)


UNARY = [torch.erf, torch.erfc, special.erfcx, special.ndtr, special.log_ndtr, special.entr, torch.lgamma, torch.digamma, special.i0e, special.i1, special.i1e,
         special.bessel_j0, special.bessel_j1, special.spherical_bessel_j0, lambda x: torch.i0(x.clamp(-30, 30)), lambda x: special.modified_bessel_i1(x.clamp(-30, 30))]
POSITIVE = [special.bessel_y0, special.bessel_y1, special.modified_bessel_k0, special.modified_bessel_k1, special.scaled_modified_bessel_k0,
            special.scaled_modified_bessel_k1, lambda x: torch.polygamma(1, x), lambda x: torch.polygamma(2, x), lambda x: torch.polygamma(3, x), lambda x: torch.mvlgamma(x + 3, 4)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_unary(check_program, dtype):
    rtol = 1e-4 if dtype == torch.float32 else 1e-6
    check_program(Table(UNARY), (line(dtype),), rtol=rtol, atol=1e-5 if dtype == torch.float32 else 1e-8)
    check_program(Table(POSITIVE), (line(dtype)[:23],), rtol=rtol, atol=1e-6)
    check_program(Table([special.airy_ai]), (line(dtype),), rtol=1e-4, atol=1e-5)  # PyTorch's own is not better


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_inverse(check_program, dtype):
    p = torch.tensor([0.0, 1e-30, 1e-10, 1e-5, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.99999, 1.0, 1.5, math.nan], dtype=dtype)
    check_program(Table([torch.erfinv, special.ndtri, lambda p: torch.erfinv(-p)]), (p,), rtol=1e-5, atol=1e-7)


def test_negative_arguments(check_program):
    x = torch.tensor([-0.5, -1.5, -2.25, -7.1, -20.3])
    check_program(Table([lambda x: torch.polygamma(1, x), lambda x: torch.polygamma(2, x), torch.lgamma, torch.digamma]), (x,), rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_two_arguments(check_program, dtype):
    a = torch.tensor([0.0, 1e-3, 0.5, 1.0, 3.0, 10.0, 99.0, 101.0, 250.0, 5000.0, math.inf], dtype=dtype)[:, None]
    x = torch.tensor([0.0, 1e-3, 0.5, 1.0, 5.0, 20.0, 90.0, 99.5, 100.5, 150.0, 260.0, 4900.0, 5100.0, math.inf], dtype=dtype)[None, :]
    check_program(Table([torch.igamma, torch.igammac]), (a, x), rtol=1e-4, atol=1e-5)
    s = torch.tensor([1.0, 1.5, 2.0, 3.0, 10.0, 0.5], dtype=dtype)[:, None]
    q = torch.tensor([0.5, 1.0, 2.0, 30.0, 0.0], dtype=dtype)[None, :]
    check_program(Table([special.zeta, lambda s, q: special.zeta(s, 2.0), lambda s, q: special.zeta(2.0, q)]), (s, q), rtol=1e-5)


def test_polynomials(check_program):
    names = ["chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he",
             "laguerre_polynomial_l", "legendre_polynomial_p", "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
             "shifted_chebyshev_polynomial_w"]
    functions = [getattr(special, name) for name in names]
    x, n = torch.tensor([-1.5, -1.0, -0.3, 0.0, 0.4, 1.0, 2.0])[:, None], torch.tensor([-1, 0, 1, 2, 3, 5, 7, 8])[None, :]
    check_program(Table([*functions, lambda x, n: special.hermite_polynomial_h(x, 3), lambda x, n: special.legendre_polynomial_p(0.5, n)]), (x, n.float()), rtol=1e-4)
