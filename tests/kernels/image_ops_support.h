// Makes batches of pictures with image operations, for the tests of host and device.
#pragma once

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/device/philox.h"
#include "kernels/image_ops/image_ops.h"
#include "tests/kernels/harness.h"

namespace convoy::kernels::testing {

// Returns pictures of gradients with noise. In every group of four samples, the third has only a
// few grey levels and the fourth only one, which are special cases of autocontrast and equalize.
inline Tensor pictures(const Shape& shape) {
  Tensor images{{DType::u8, shape, Layout::channels_last, nullptr}, {}, {}};
  for (std::int64_t n = 0; n < shape[0]; ++n)
    for (std::int64_t c = 0; c < shape[1]; ++c)
      for (std::int64_t y = 0; y < shape[2]; ++y)
        for (std::int64_t x = 0; x < shape[3]; ++x) {
          const auto noise =
              philox(static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(y * shape[3] + x),
                     static_cast<std::uint64_t>(c))
                  .word[0] >>
              26;
          const double level = static_cast<double>((y * 3 + x * 2 + c * 40 + n * 11 + noise) % 256);
          images.values.push_back(n % 4 == 2   ? 60 + std::floor(level / 8) * static_cast<double>(1 + c)
                                  : n % 4 == 3 ? 90 + 10 * static_cast<double>(c)
                                               : level);
        }
  return images;
}

inline Case image_ops(const Shape& shape, const std::vector<SampleTransform>& transforms, int most) {
  Tensor operand{{DType::u8, {shape[0], sizeof(SampleTransform)}, Layout::row_major, nullptr}, {}, {}};
  operand.bytes.resize(transforms.size() * sizeof(SampleTransform));
  std::memcpy(operand.bytes.data(), transforms.data(), operand.bytes.size());
  return {.name = "image_ops_forward " + shape.to_string(),
          .maker = [=](Backend b, KernelRequest& r) { return image_ops_forward(b, {most}, r); },
          .inputs = {pictures(shape), operand},
          .outputs = {{DType::u8, shape, Layout::channels_last, nullptr}},
          .control = all_valid(shape[0]),
          .tolerance = 0};
}

inline std::vector<std::uint8_t> bytes_of_sample(const Tensor& images, std::int64_t n) {
  const Shape& s = images.desc.shape;
  std::vector<std::uint8_t> bytes;
  for (std::int64_t y = 0; y < s[2]; ++y)
    for (std::int64_t x = 0; x < s[3]; ++x)
      for (std::int64_t c = 0; c < s[1]; ++c)
        bytes.push_back(static_cast<std::uint8_t>(images.values[((n * s[1] + c) * s[2] + y) * s[3] + x]));
  return bytes;
}

}  // namespace convoy::kernels::testing
