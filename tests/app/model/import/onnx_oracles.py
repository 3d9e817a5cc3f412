"""Exports small networks to ONNX and writes what PyTorch computes with them: NAME.onnx and NAME.values.

Usage: onnx_oracles.py FOLDER [NAME...]
NAME.values holds records: the length of a name, the name, the number of values (all lengths in 8 bytes), float32 values.
They are the batch (images, labels), logits in evaluation, the loss in training, gradient:PARAMETER and, after that
step, state:NAME.
"""
import struct
import sys
import warnings

import torch
import torch.nn.functional as F
import torchvision.models as models
from torch import nn
from torch.onnx import TrainingMode
from torchvision.models import convnext, efficientnet, mobilenetv3, regnet

warnings.filterwarnings("ignore")


class Lambda(nn.Module):
    def __init__(self, function, *modules):
        super().__init__()
        self.function = function
        self.part = nn.ModuleList(modules)

    def forward(self, x):
        return self.function(x, *self.part)


def conv(inputs, outputs, kernel=3, **more):
    more.setdefault("padding", kernel // 2)
    return nn.Conv2d(inputs, outputs, kernel, **more)


def head(channels, classes=5):
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def net(*parts):
    return nn.Sequential(*parts)


class Block(nn.Module):
    """A residual block with a projection, as in ResNet."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = conv(inputs, outputs, stride=stride, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = conv(outputs, outputs, bias=False), nn.BatchNorm2d(outputs, momentum=0.3, eps=1e-3)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = net(conv(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + self.downsample(x))


class Gate(nn.Module):
    """Squeeze and excitation by fully connected layers and a view."""

    def __init__(self, channels, gate):
        super().__init__()
        self.fc1, self.fc2, self.gate = nn.Linear(channels, 4), nn.Linear(4, channels, bias=False), gate

    def forward(self, x):
        s = self.gate(self.fc2(F.relu(self.fc1(x.mean((2, 3))))))
        return x * s.view(x.size(0), -1, 1, 1)


class LayerNorm2d(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        variance = (x - mean).pow(2).mean(1, keepdim=True)
        return self.weight[:, None, None] * ((x - mean) / torch.sqrt(variance + 1e-6)) + self.bias[:, None, None]


class Branches(nn.Module):
    """An Inception block: asymmetric kernels, a pooled branch, channels joined."""

    def __init__(self, inputs):
        super().__init__()
        self.a = net(conv(inputs, 4, 1, bias=False), nn.BatchNorm2d(4, eps=1e-3), nn.ReLU())
        self.b = net(nn.Conv2d(inputs, 4, (1, 7), padding=(0, 3)), nn.ReLU(), nn.Conv2d(4, 6, (7, 1), padding=(3, 0)))
        self.c = conv(inputs, 3, 1)

    def forward(self, x):
        pooled = F.avg_pool2d(x, 3, stride=1, padding=1)
        return torch.cat([self.a(x), self.b(x), self.c(pooled), F.max_pool2d(x, 3, 1, 1)], 1)


def permuted(x, norm, up, down):
    y = down(F.gelu(up(norm(x.permute(0, 2, 3, 1))))).permute(0, 3, 1, 2)
    return x + y


def relu6_swish(x, a, b):
    y = a(x)
    y = y * F.relu6(y + 3) / 6
    return b(y * (F.relu6(y + 3) / 6))


def split(x, a, b):
    first, second, rest = torch.split(a(x), [2, 4, 6], 1)
    halves = rest.chunk(2, 1)
    return b(torch.cat([second, halves[1], first[:, 1:], halves[0]], 1))


def every_second(x, a, b):
    return b(F.relu(a(x)[:, :, ::2, 1::3]))


def unequal_pads(x, a, b):
    y = F.relu(a(F.pad(x, (0, 1, 0, 1))))
    y = F.max_pool2d(F.pad(y, (0, 1, 1, 0)), 3, 2)
    return b(F.avg_pool2d(F.pad(y, (1, 1, 1, 1)), 2, 2))


def tanh_gelu(x):
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def squeezenet():
    network = models.squeezenet1_1(num_classes=5)
    return network


def efficient():
    rows = [efficientnet.MBConvConfig(1, 3, 1, 16, 8, 1, 1.0, 1.0), efficientnet.MBConvConfig(4, 5, 2, 8, 16, 2, 1.0, 1.0)]
    rows = [efficientnet.FusedMBConvConfig(2, 3, 1, 8, 8, 1)] + rows[1:] if hasattr(efficientnet, "FusedMBConvConfig") else rows
    return efficientnet.EfficientNet(rows, dropout=0.0, stochastic_depth_prob=0.0, num_classes=5)


def mobilenet_v3():
    row = mobilenetv3.InvertedResidualConfig
    rows = [row(16, 3, 16, 16, True, "RE", 2, 1, 0.5), row(16, 5, 32, 16, True, "HS", 1, 1, 0.5)]
    return mobilenetv3.MobileNetV3(rows, last_channel=32, num_classes=5, dropout=0.0)


NETWORKS = {
    "resnet": (lambda: net(conv(3, 8, 7, stride=2, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1), Block(8, 16, 2), head(16)), 32, 13),
    "vgg_bn": (lambda: net(conv(3, 8), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), conv(8, 8), nn.ReLU(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(2),
                           nn.Flatten(), nn.Linear(32, 16), nn.ReLU(), nn.Dropout(0.0), nn.Linear(16, 5)), 16, 11),
    "mobilenet_v2": (lambda: models.MobileNetV2(num_classes=5, width_mult=0.1, dropout=0.0,
                                                inverted_residual_setting=[[1, 8, 1, 1], [6, 16, 2, 2], [6, 24, 1, 2]]), 32, 13),
    "mobilenet_v3": (mobilenet_v3, 32, 13),
    "mnasnet": (lambda: models.MNASNet(0.1, num_classes=5, dropout=0.0), 96, 13),
    "shufflenet": (lambda: models.ShuffleNetV2([2, 2, 1], [8, 16, 24, 32, 32], num_classes=5), 32, 13),
    "densenet": (lambda: models.DenseNet(growth_rate=4, block_config=(2, 2), num_init_features=8, num_classes=5), 32, 13),
    "squeezenet": (squeezenet, 64, 13),
    "efficientnet": (efficient, 32, 13),
    "regnet": (lambda: regnet.RegNet(regnet.BlockParams.from_init_params(depth=4, w_0=8, w_a=8.0, w_m=2.0, group_width=8, se_ratio=0.25),
                                     num_classes=5), 32, 13),
    "convnext": (lambda: convnext.ConvNeXt([convnext.CNBlockConfig(8, 16, 2), convnext.CNBlockConfig(16, None, 1)], num_classes=5,
                                           stochastic_depth_prob=0.0), 32, 13),
    "convnext_17": (lambda: convnext.ConvNeXt([convnext.CNBlockConfig(8, 16, 1), convnext.CNBlockConfig(16, None, 1)], num_classes=5,
                                              stochastic_depth_prob=0.0), 32, 17),
    "inception": (lambda: net(Branches(3), nn.ReLU(), Branches(16), head(29)), 16, 13),
    "googlenet_pools": (lambda: net(conv(3, 6), nn.MaxPool2d(3, 2, ceil_mode=True), conv(6, 6), nn.MaxPool2d(2, 2, ceil_mode=True), head(6)), 19, 13),
    "averages": (lambda: net(conv(3, 6), nn.AvgPool2d(3, 2, 1, count_include_pad=False), conv(6, 6),
                             nn.AvgPool2d((2, 3), (2, 1), ceil_mode=True), nn.Flatten(), nn.Linear(6 * 5 * 7, 5)), 18, 13),
    "clips": (lambda: net(conv(3, 6), nn.ReLU6(), conv(6, 6), nn.Hardtanh(-0.5, 0.75), conv(6, 6), nn.LeakyReLU(0.2), head(6)), 12, 11),
    "prelu": (lambda: net(conv(3, 6), nn.PReLU(6), conv(6, 6), nn.PReLU(), head(6)), 12, 13),
    "smooth": (lambda: net(conv(3, 6), nn.SiLU(), conv(6, 6), nn.GELU(), conv(6, 6), nn.Sigmoid(), conv(6, 6), nn.Hardswish(), conv(6, 6), nn.Hardsigmoid(), head(6)), 12, 13),
    "gelu_tanh": (lambda: net(conv(3, 6), nn.GELU("tanh"), conv(6, 6), Lambda(tanh_gelu), head(6)), 12, 13),
    "relu6_swish": (lambda: net(Lambda(relu6_swish, conv(3, 6), conv(6, 6)), head(6)), 12, 13),
    "gates": (lambda: net(conv(3, 8), nn.ReLU(), Gate(8, nn.Sigmoid()), conv(8, 8), Gate(8, nn.Hardsigmoid()), head(8)), 12, 13),
    "group_norm": (lambda: net(conv(3, 8), nn.GroupNorm(2, 8), nn.ReLU(), conv(8, 6), nn.InstanceNorm2d(6, affine=True), nn.ReLU(), head(6)), 12, 13),
    "norms_of_no_parameters": (lambda: net(conv(3, 8), nn.BatchNorm2d(8, affine=False), nn.SiLU(), conv(8, 8), nn.GroupNorm(2, 8, affine=False), nn.ReLU(),
                                           conv(8, 6, bias=False), nn.InstanceNorm2d(6), nn.ReLU(), head(6)), 12, 13),
    "layer_norm_2d": (lambda: net(conv(3, 8), LayerNorm2d(8), nn.ReLU(), head(8)), 12, 13),
    "layer_norm_flat": (lambda: net(conv(3, 8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(8), nn.Linear(8, 5)), 12, 13),
    "permuted": (lambda: net(conv(3, 8), Lambda(permuted, nn.LayerNorm(8), nn.Linear(8, 12), nn.Linear(12, 8)), head(8)), 12, 17),
    "splits": (lambda: net(Lambda(split, conv(3, 12), conv(11, 6)), head(6)), 12, 13),
    "every_second": (lambda: net(Lambda(every_second, conv(3, 6), conv(6, 6)), head(6)), 13, 13),
    "local_response_norm": (lambda: net(conv(3, 8), nn.LocalResponseNorm(5, 0.5, 0.6, 2.0), nn.ReLU(), conv(8, 6), nn.LocalResponseNorm(3, 0.1), head(6)), 12, 13),
    "unequal_pads": (lambda: net(Lambda(unequal_pads, conv(3, 6, 3, stride=2, padding=0), conv(6, 6)), head(6)), 17, 13),
    "groups": (lambda: net(conv(3, 8, dilation=2, padding=2), nn.ReLU(), conv(8, 8, 5, groups=8), conv(8, 12, groups=2, stride=(1, 2)), nn.ReLU(), head(12)), 12, 13),
    "numbers": (lambda: net(conv(3, 6), nn.ReLU(), Lambda(lambda x: 1 - (0.5 * x + 0.25) / 3), conv(6, 6), Lambda(lambda x: -x - 0.1), nn.ReLU(),
                            Lambda(lambda x, a: x + 0.17 * a(x), conv(6, 6)), head(6)), 12, 13),
    "softmax": (lambda: net(conv(3, 6), nn.ReLU(), head(6), nn.Softmax(1)), 12, 13),
    "matmul": (lambda: net(conv(3, 6), nn.ReLU(), nn.Flatten(), Lambda(lambda x, a: x @ a.weight.t() + a.bias, nn.Linear(6 * 36, 5))), 6, 13),
}


def randomise(network):
    """Gives norms and biases values that matter; all else has those of PyTorch."""
    for name, tensor in list(network.named_parameters()) + list(network.named_buffers()):
        if not tensor.is_floating_point():
            continue
        with torch.no_grad():
            if name.endswith("running_var"):
                tensor.uniform_(0.5, 2)
            elif tensor.dim() == 1:
                tensor.add_(0.2 * torch.randn_like(tensor))
            elif name.endswith("layer_scale"):
                tensor.normal_(0.5, 0.2)


def write(path, records):
    with open(path, "wb") as file:
        for name, values in records.items():
            values = values.detach().to(torch.float32).contiguous()
            file.write(struct.pack("<q", len(name)) + name.encode() + struct.pack("<q", values.numel()))
            file.write(values.numpy().tobytes())


def make(folder, name):
    build, size, opset = NETWORKS[name]
    torch.manual_seed(len(name) + 7)
    network = build()
    randomise(network)
    logits_of = network[:-1] if name == "softmax" else network
    for module in network.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    images, labels = torch.randn(4, 3, size, size), torch.randint(0, 5, (4,))
    axes = {"images": {0: "N"}, "logits": {0: "N"}} if opset == 13 and len(name) % 2 else None
    torch.onnx.export(network, images, f"{folder}/{name}.onnx", training=TrainingMode.TRAINING, do_constant_folding=False,
                      opset_version=opset, input_names=["images"], output_names=["logits"], dynamic_axes=axes)
    torch.manual_seed(1)
    records = {"images": images, "labels": labels}
    network.eval()
    records["logits"] = logits_of(images)
    network.train()
    loss = F.cross_entropy(logits_of(images), labels)
    loss.backward()
    records["loss"] = loss.reshape(1)
    records.update({f"gradient:{key}": value.grad for key, value in network.named_parameters()})
    records.update({f"state:{key}": value for key, value in network.named_buffers() if value.is_floating_point()})
    write(f"{folder}/{name}.values", records)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for which in sys.argv[2:] or NETWORKS:
        make(sys.argv[1], which)
