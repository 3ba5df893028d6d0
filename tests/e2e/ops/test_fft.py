"""Fourier transforms: each case is a function of a few tensors."""
import pytest
import torch
from test_complex import rand
from test_shape import Many
from torch.export import Dim

fft = torch.fft
R, C = rand(3, 6, 7, dtype=torch.float32), rand(3, 6, 7)
NORMS = [None, "backward", "ortho", "forward"]
ONE = [fft.fft, fft.ifft, fft.hfft, fft.irfft]             # of complex numbers
MANY = [fft.fft2, fft.ifft2, fft.hfft2, fft.irfft2, fft.fftn, fft.ifftn, fft.hfftn, fft.irfftn]
REAL_ONE, REAL_MANY = [fft.rfft, fft.ihfft], [fft.rfft2, fft.ihfft2, fft.rfftn, fft.ihfftn]

CASES = {
    "norms": [(R, C), *[lambda r, c, f=f, n=n: f(c, norm=n) for f in ONE for n in NORMS], *[lambda r, c, f=f, n=n: f(r, norm=n) for f in REAL_ONE for n in NORMS]],
    "sizes": [(R, C), *[lambda r, c, f=f, n=n: f(c, n) for f in ONE for n in (1, 2, 4, 5, 10, 16)], *[lambda r, c, f=f, n=n: f(r, n) for f in REAL_ONE for n in (1, 2, 5, 16)]],
    "dims": [(R, C), *[lambda r, c, f=f, d=d: f(c, dim=d) for f in ONE for d in (0, 1, -2)], *[lambda r, c, f=f, d=d: f(r, 9, dim=d) for f in ONE + REAL_ONE for d in (0, -2)]],
    "many": [(R, C), *[lambda r, c, f=f, n=n: f(c, norm=n) for f in MANY for n in (None, "ortho", "forward")], *[lambda r, c, f=f: f(r, norm="ortho") for f in MANY + REAL_MANY],
             *[lambda r, c, f=f: f(c, s=(4, 9), dim=(2, 0)) for f in MANY], *[lambda r, c, f=f: f(r, s=(4, 9), dim=(0, 1)) for f in REAL_MANY], *[lambda r, c, f=f: f(c, s=(4, -1)) for f in MANY], lambda r, c: fft.fftn(c, dim=(1,))],
    "types": [(R, C), lambda r, c: fft.fft(r.long()), lambda r, c: fft.rfft(r.double()), lambda r, c: fft.irfft(c.cdouble()), lambda r, c: fft.rfft(r > 0), lambda r, c: fft.ifft(c.cdouble(), 9), lambda r, c: fft.fft(r[0, 0]), lambda r, c: fft.irfft(c[0, 0])],
    "shifts": [(R, C), lambda r, c: fft.fftshift(r), lambda r, c: fft.ifftshift(r), lambda r, c: fft.fftshift(c, dim=(-1,)), lambda r, c: fft.ifftshift(c, dim=1), lambda r, c: fft.fftfreq(7, 0.5) + r[0, 0], lambda r, c: fft.rfftfreq(8) + r[0, 0, :5], lambda r, c: fft.fftfreq(1)],
}


@pytest.mark.parametrize("name", CASES)
def test_fft(check_program, name):
    inputs, *functions = CASES[name]
    check_program(Many(functions), inputs)


def large(*shape, dtype=torch.float32):
    return torch.randn(*shape, dtype=dtype)


# Beyond what is done by a matrix: powers of two by ONNX's DFT, other sizes by it in float64.
@pytest.mark.parametrize("n", [1024, 1000, 1009])
@pytest.mark.parametrize("opset", [18, 20])
def test_large(check_program, n, opset):
    functions = [lambda x: fft.rfft(x), lambda x: fft.irfft(fft.rfft(x, norm="ortho"), n), lambda x: fft.ifft(fft.fft(x + 1j * x.flip(-1)) * 2), lambda x: fft.ifft(x + 0j, norm="forward"), lambda x: fft.fft(x.T + 0j, dim=0, norm="ortho"), lambda x: fft.hfft(x[:, :500] + 0j)]
    check_program(Many(functions), (large(2, n),), opset=opset, rtol=1e-4, atol=1e-5)


def test_accuracy(check_program):
    """As exact as PyTorch's, whatever the size."""
    for n in (60, 400, 512, 999, 2048):
        check_program(Many([lambda x: fft.rfft(x), lambda x: fft.fft(x + 1j), lambda x: fft.irfft(fft.rfft(x), n)]), (large(2, n),), rtol=0, atol=1.5e-4 if n > 600 else 5e-5)


def test_dynamic(check_program):
    n, m = Dim("n", min=9), Dim("m")
    functions = [lambda x: fft.rfft(x), lambda x: fft.fft(x), lambda x: fft.ifft(x + 1j), lambda x: fft.irfft(fft.rfft(x), x.shape[-1]), lambda x: fft.fft2(x, norm="ortho"), lambda x: fft.rfft(x, 8), lambda x: fft.fftshift(x), lambda x: fft.irfftn(fft.rfftn(x), x.shape)]
    check_program(Many(functions), (large(3, 10),), dynamic_shapes={"inputs": ({0: m, 1: n},)}, calls=[((large(2, 16),), None), ((large(5, 9),), None)], atol=1e-4)


SIGNAL = large(2, 400)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_stft(check_program, dtype):
    window = torch.hann_window(48, dtype=dtype)
    functions = [
        lambda x, w: torch.stft(x, 48, window=w, return_complex=True), lambda x, w: torch.stft(x[0], 64, 10, 48, w, return_complex=True), lambda x, w: torch.stft(x, 48, 20, window=w, center=False, return_complex=True),
        lambda x, w: torch.stft(x, 48, window=w, normalized=True, return_complex=True), lambda x, w: torch.stft(x, 48, window=w, onesided=False, return_complex=True).abs(), lambda x, w: torch.view_as_real(torch.stft(x, 48, window=w, return_complex=True)),
        lambda x, w: torch.stft(x, 50, 25, 40, window=torch.ones(40, dtype=x.dtype), return_complex=True), lambda x, w: torch.stft(x + 1j * x.flip(1), 48, window=w, return_complex=True, center=False), lambda x, w: torch.stft(x, 48, window=w, pad_mode="constant", return_complex=True),
        lambda x, w: torch.stft(x, 48, window=w * 1j + 1, return_complex=True, center=False), lambda x, w: torch.stft(x * 1j, 48, window=w, return_complex=False, center=False)]
    check_program(Many(functions), (SIGNAL.to(dtype), window), atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_istft(check_program, dtype):                     # float64 goes frame by frame
    window = torch.hamming_window(48, dtype=dtype)
    spectrum = torch.stft(SIGNAL.to(dtype), 48, window=window, return_complex=True)
    functions = [lambda s, w: torch.istft(s, 48, window=w), lambda s, w: torch.istft(s[0], 48, window=w, length=390), lambda s, w: torch.istft(s, 48, window=w, length=450), lambda s, w: torch.istft(s, 48, 10, window=w, normalized=True),
                 lambda s, w: torch.istft(s, 48, 12, 40, window=w[:40]), lambda s, w: torch.istft(s, 48, window=w, center=False), lambda s, w: torch.istft(torch.cat([s, s[:, 1:-1].flip(1).conj()], 1), 48, window=w, onesided=False),
                 lambda s, w: torch.istft(torch.cat([s, s[:, 1:-1].flip(1)], 1), 48, window=w, onesided=False, return_complex=True),
                 lambda s, w: torch.istft(torch.cat([s, s[:, 1:-1].flip(1)], 1), 48, window=w + 0.1j, onesided=False, return_complex=True)]
    check_program(Many(functions), (spectrum, window), atol=1e-4)


def test_frame_by_frame(check_program):
    """Frames whose convolution would have a kernel of megabytes."""
    window = torch.hamming_window(512)
    checked = check_program(Many([lambda x, w: torch.stft(x, 512, window=w, onesided=False, return_complex=True)]), (large(2, 2000), window), atol=1e-4)
    assert "Conv" not in checked.op_types and "DFT" in checked.op_types


def test_stft_of_any_length(check_program):
    window = torch.hann_window(16)
    check_program(Many([lambda x: torch.stft(x, 16, window=window, center=False, return_complex=True), lambda x: torch.stft(x, 1024, 512, center=False, return_complex=True)]), (large(2, 3000),),
                  dynamic_shapes={"inputs": ({1: Dim.AUTO},)}, calls=[((large(2, 4321),), None), ((large(2, 1536),), None)], atol=1e-4)


def test_istft_of_any_length(check_program):
    window = torch.hamming_window(16)
    check_program(Many([lambda s: torch.istft(s, 16, window=window, center=False)]), (rand(2, 9, 20),), dynamic_shapes={"inputs": ({2: Dim.AUTO},)}, calls=[((rand(2, 9, 33),), None), ((rand(2, 9, 6),), None)], atol=1e-4)


def test_one_node_a_transform(check_program):
    assert check_program(Many([lambda x: fft.rfft(x)]), (large(2, 128),)).op_types == ["MatMul", "Reshape"]
    assert check_program(Many([lambda x: torch.view_as_real(fft.ifft(x))]), (rand(2, 256),)).op_types == ["DFT"]
