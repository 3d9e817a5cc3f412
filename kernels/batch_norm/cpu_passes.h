// Declares the inner loops of batch norm on the host (cpu_passes.cpp), which cpu.cpp calls for one
// channel block of one sample at a time. The compiler makes a version of each function for every
// set of vector instructions (CONVOY_VECTORISED, parallel.h).
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/device/host_kernel.h"
#include "kernels/device/parallel.h"

namespace convoy::kernels::cpu {

// Describes a tensor of any layout as [n][blocks][pixels][block]. `block` is the number of channels
// in a block (1 in row_major). In the last block, lanes beyond `channels` are padding.
struct BatchNormLayout {
  std::int64_t n, channels, blocks, pixels;
  int block;

  explicit BatchNormLayout(const TensorDesc& x) {
    const ImageExtents extents = image_extents(x.shape);
    n = extents.n, channels = extents.c, pixels = extents.pixels();
    block = int(channel_lanes("batch_norm", x));
    blocks = (channels + block - 1) / block;
  }
  std::int64_t padded() const { return blocks * block; }
  std::int64_t run_offset(std::int64_t sample, std::int64_t channel_block) const {
    return (sample * blocks + channel_block) * pixels * block;
  }
};

// Per-channel constants of y = (x - mean) scale + shift and of dx = scale g + slope (x - mean) +
// offset. All constants are 0 in padding lanes, so that padding stays 0.
struct Coefficients {
  float *mean, *scale, *shift, *slope, *offset;
  static constexpr int kVectors = 5;

  Coefficients(void* workspace, const BatchNormLayout& at)
      : mean(static_cast<float*>(workspace)),
        scale(mean + at.padded()),
        shift(scale + at.padded()),
        slope(shift + at.padded()),
        offset(slope + at.padded()) {}
  static std::size_t bytes(const BatchNormLayout& at) {
    return static_cast<std::size_t>(kVectors * at.padded()) * sizeof(float);
  }
};

// Tells backward where the ReLU's output is 0: from_x computes the output again from x, and from_y
// reads it. `factors` multiplies by the derivatives of an activation in place of a ReLU.
enum class MaskSource : std::uint8_t { none, from_x, from_y, factors };

// The operands of a pass: the pixels of one channel block of one sample.
struct Pass {
  // `other` is the residual in normalise_task, y in reduce_task and dx2 in backward_task, or null.
  // dy2 and dx2 are the gradients of a second consumer of y and x (batch_norm.h).
  const float *x, *other, *dy, *dy2;
  float* out;
  Coefficients with;
  std::int64_t pixels;
  const float* factors = nullptr;  // for MaskSource::factors: the derivatives of the activation

  // Returns the pass over `count` of the pixels, from pixel `begin` on.
  Pass part(std::int64_t begin, std::int64_t count, int block) const {
    Pass part = *this;
    for (const float* Pass::*operand : {&Pass::x, &Pass::other, &Pass::dy, &Pass::dy2})
      if (part.*operand != nullptr) part.*operand += begin * block;
    if (out != nullptr) part.out += begin * block;
    part.pixels = count;
    return part;
  }
};

// Adds the elements of x to `sum` and their squares to `squares`. Both have one value per channel
// of the block.
void sum_task(const Pass& pass, int block, double* sum, double* squares);
void normalise_task(const Pass& pass, int block, std::int64_t channel, bool relu, bool residual);
// Adds g to `sum` and g (x - mean) to `product`, per channel of the block. Writes g to `out` if
// `second` is set (there is a dy2) or `write` is set.
void reduce_task(const Pass& pass, int block, std::int64_t channel, MaskSource mask, bool second, bool write,
                 double* sum, double* product);
void backward_task(const Pass& pass, int block, std::int64_t channel, MaskSource mask, bool second);

}  // namespace convoy::kernels::cpu
