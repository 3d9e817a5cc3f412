"""Runs an ONNX file with PyTorch's functions: a reader of the format that shares nothing with the writer."""
import numpy as np
import onnx
import onnx.numpy_helper
import torch
import torch.nn.functional as F


def attributes_of(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def padded(x, pads, value):
    top, left, bottom, right = pads
    return F.pad(x, (left, right, top, bottom), value=value) if any(pads) else x


def convolution(x, w, b=None, *, kernel_shape, strides, pads, dilations, group):
    return F.conv2d(padded(x, pads, 0.0), w, b, strides, 0, dilations, group)


def max_pool(x, *, kernel_shape, strides, pads, ceil_mode):
    # Pad with negative infinity, which no maximum takes. PyTorch's ceil_mode drops a last window
    # that starts in the padding. ONNX's keeps it, so add the missing rows and columns here.
    x = padded(x, pads, -torch.inf)
    if ceil_mode:
        more = [(s - (n - k) % s) % s for n, k, s in zip(x.shape[2:], kernel_shape, strides)]
        x = F.pad(x, (0, more[1], 0, more[0]), value=-torch.inf)
    return F.max_pool2d(x, kernel_shape, strides)


def average_pool(x, *, kernel_shape, strides, pads, ceil_mode, count_include_pad):
    assert not ceil_mode and pads[:2] == pads[2:]
    return F.avg_pool2d(x, kernel_shape, strides, pads[:2], False, bool(count_include_pad))


def reshape(x, shape):
    return x.reshape([x.shape[i] if n == 0 else n for i, n in enumerate(shape.tolist())])


def layer_norm(x, w, b, *, axis, epsilon):
    assert axis == -1
    return F.layer_norm(x, w.shape, w, b, epsilon)


def slice_of(x, begin, end, axis):
    return x.narrow(int(axis), int(begin), int(end) - int(begin))


def pad(x, amounts, value):
    top, left, bottom, right = (amounts.tolist()[i] for i in (2, 3, 6, 7))
    return F.pad(x, (left, right, top, bottom), value=float(value))


OPERATIONS = {
    "Conv": convolution,
    "BatchNormalization": lambda x, w, b, m, v, *, epsilon, momentum: F.batch_norm(x, m, v, w, b, False, 0, epsilon),
    "LayerNormalization": layer_norm,
    "InstanceNormalization": lambda x, w, b, *, epsilon: F.instance_norm(x, None, None, w, b, True, 0, epsilon),
    "Relu": torch.relu,
    "Clip": lambda x, low=None, high=None: torch.clip(x, low, high),
    "LeakyRelu": lambda x, *, alpha: F.leaky_relu(x, alpha),
    "PRelu": lambda x, w: torch.where(x > 0, x, w * x),
    "Sigmoid": torch.sigmoid,
    "HardSigmoid": lambda x, *, alpha, beta: torch.clip(alpha * x + beta, 0, 1),
    "HardSwish": F.hardswish,
    "Erf": torch.erf,
    "Tanh": torch.tanh,
    "Add": torch.add,
    "Mul": torch.mul,
    "Div": torch.div,
    "Sum": lambda *x: sum(x[1:], x[0]),
    "Concat": lambda *x, axis: torch.cat(x, axis),
    "Slice": slice_of,
    "Pad": pad,
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "GlobalAveragePool": lambda x: x.mean((2, 3), keepdim=True),
    "GlobalMaxPool": lambda x: x.amax((2, 3), keepdim=True),
    "Flatten": lambda x, *, axis: x.flatten(axis),
    "Reshape": reshape,
    "Transpose": lambda x, *, perm: x.permute(*perm),
    "Softmax": lambda x, *, axis: torch.softmax(x, axis),
    "LRN": lambda x, *, size, alpha, beta, bias: F.local_response_norm(x, size, alpha, beta, bias),
    "Dropout": lambda x, rate: x,
    "Identity": lambda x: x,
    "Gemm": lambda x, w, b=0.0, *, transB: x @ w.T + b,
}


def run(file, images):
    """Checks the file by ONNX's own rules and returns its output for the images, a tensor [N, C, H, W]."""
    model = onnx.load(file)
    onnx.checker.check_model(model, full_check=True)
    values = {t.name: torch.from_numpy(np.array(onnx.numpy_helper.to_array(t))) for t in model.graph.initializer}
    values[model.graph.input[0].name] = images
    with torch.no_grad():
        for node in model.graph.node:
            operands = [values[name] if name else None for name in node.input]
            values[node.output[0]] = OPERATIONS[node.op_type](*operands, **attributes_of(node))
    return values[model.graph.output[0].name]
