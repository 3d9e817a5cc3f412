"""Functions of torch.nn.functional with kinks, for jobs/compare_onnx.py: smooth ones in their place, and ones that
take given sides of the kinks."""
import torch


def silu(x, *_, inplace=False):
    return torch.nn.functional.silu(x)


def sigmoid(x, *_, inplace=False):
    return torch.sigmoid(x)


def average_pool(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    return torch.nn.functional.avg_pool2d(x, kernel_size, stride, padding, ceil_mode, count_include_pad=False)


# torch.nn.ReLU6 calls hardtanh.
SMOOTH = {"relu": silu, "hardtanh": silu, "hardswish": silu, "hardsigmoid": sigmoid, "max_pool2d": average_pool}
ORIGINAL = {name: getattr(torch.nn.functional, name) for name in SMOOTH}


def replace_functions(functions):
    """Puts functions into torch.nn.functional, from where modules call them, and the original ones for others."""
    for name, function in (ORIGINAL | functions).items():
        setattr(torch.nn.functional, name, function)


def refuse(model):
    """Raises an error if an operation of the ONNX file, which is field 4 of its node, has a kink."""
    with open(model, "rb") as file:
        content = file.read()
    for operation in (b"Relu", b"Clip", b"HardSwish", b"HardSigmoid", b"MaxPool"):
        if b"\x22" + bytes([len(operation)]) + operation in content:
            raise RuntimeError(f"the smooth network has a {operation.decode()}")


class Sides:
    """Functions that record which side of its kinks each number takes. Once `repeats` is true, each number takes
    the recorded side instead of its own."""

    def __init__(self):
        self.recorded, self.repeats = [], False

    def side(self, find):
        if self.repeats:
            return self.recorded.pop(0)
        self.recorded.append(find())
        return self.recorded[-1]

    def activation(self, low, high, between, above):
        def function(x, *_, inplace=False):
            is_low = self.side(lambda: x <= low)
            y = between(x) if high is None else torch.where(self.side(lambda: x >= high), above(x), between(x))
            return y.masked_fill(is_low, 0.0)
        return function

    def max_pool(self, x, *options, return_indices=False, **more):
        chosen = self.side(lambda: ORIGINAL["max_pool2d"](x, *options, return_indices=True, **more)[1])
        return x.flatten(2).gather(2, chosen.flatten(2)).view(chosen.shape)

    def functions(self):
        return {"relu": self.activation(0, None, lambda x: x, None),
                "hardtanh": self.activation(0, 6, lambda x: x, lambda x: 0 * x + 6),
                "hardswish": self.activation(-3, 3, lambda x: x * (x + 3) / 6, lambda x: x),
                "hardsigmoid": self.activation(-3, 3, lambda x: x / 6 + 0.5, lambda x: 0 * x + 1),
                "max_pool2d": self.max_pool}
