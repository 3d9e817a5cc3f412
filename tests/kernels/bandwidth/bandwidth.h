// Declares the measurements of kernels_bandwidth.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/device/kernel.h"
#include "kernels/device/sample_transform.h"

namespace convoy::kernels::testing {

inline TensorDesc desc(DType type, Shape shape) {
  return {type, shape, shape.rank() == 4 ? Layout::channels_last : Layout::row_major, nullptr};
}

struct Measured {
  std::string name;
  std::function<Kernel(KernelRequest&)> make;
  std::vector<TensorDesc> inputs, outputs;
  std::vector<int> unread = {};  // the positions of inputs that the kernel does not read
  // The content of the last input, if the operation has transforms.
  std::vector<SampleTransform> transforms = {};
};

// Adds rows for operations of MobileNetV2, EfficientNet-B0 and ConvNeXt-T.
void add_mobile_layers(std::vector<Measured>& rows, DType type);

}  // namespace convoy::kernels::testing
