// Dropout on the host. One call of the random generator gives words for four elements that are
// neighbours in row-major order. In blocked layouts the four elements are far apart in memory, so
// each element makes its own call and uses one of the four words.
#include <algorithm>

#include "kernels/device/host_kernel.h"
#include "kernels/device/parallel.h"
#include "kernels/dropout/dropout.h"

namespace convoy::kernels::cpu {
namespace {

constexpr std::int64_t kGroups = 256;  // groups of four elements that are computed at a time

struct Mask {
  std::uint64_t key, step;
  float rate, scale;
};

// Computes the factors of the elements in groups [first, first + kGroups) of a sample. A group has
// four elements and takes one call of the generator.
CONVOY_VECTORISED void factors_of_groups(const Mask& mask, std::uint64_t sample, std::uint32_t first,
                                         float* factors) {
  const Mask m = mask;
#pragma omp simd
  for (std::uint32_t g = 0; g < kGroups; ++g) {
    const Philox4 words = dropout_words(m.key, m.step, sample, first + g);
    for (int i = 0; i < 4; ++i) factors[4 * g + i] = uniform(words.word[i]) >= m.rate ? m.scale : 0;
  }
}

CONVOY_VECTORISED void multiply(const float* x, const float* factors, float* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = factors[i] != 0 ? x[i] * factors[i] : 0;
}

void drop_row_major(const Mask& mask, std::uint64_t sample, std::int64_t begin, std::int64_t end,
                    const float* x, float* y) {
  float factors[4 * kGroups];
  for (std::int64_t at = begin; at < end; at += 4 * kGroups) {
    factors_of_groups(mask, sample, static_cast<std::uint32_t>(at / 4), factors);
    multiply(x + at, factors, y + at, std::min(end - at, 4 * kGroups));
  }
}

// Applies dropout to all pixels of one block of `lanes` channels, which starts at `channel`.
CONVOY_VECTORISED void drop_block(const Mask& mask, std::uint64_t sample, std::int64_t channel,
                                  std::int64_t pixels, std::int64_t lanes, const float* x, float* y) {
  const Mask m = mask;
  for (std::int64_t pixel = 0; pixel < pixels; ++pixel)
#pragma omp simd
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const auto element = static_cast<std::uint64_t>((channel + lane) * pixels + pixel);
      const Philox4 w = dropout_words(m.key, m.step, sample, static_cast<std::uint32_t>(element / 4));
      const std::uint32_t low = element & 1 ? w.word[1] : w.word[0],
                          high = element & 1 ? w.word[3] : w.word[2];
      const bool keep = uniform(element & 2 ? high : low) >= m.rate;
      const float value = x[pixel * lanes + lane] * m.scale;
      y[pixel * lanes + lane] = keep ? value : 0;
    }
}

CONVOY_VECTORISED void scale_piece(const float* x, float factor, float* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = factor != 0 ? x[i] * factor : 0;
}

// Keeps or drops whole samples (stochastic depth). Works on whole buffers, so the layout does not
// matter.
Kernel scale_samples(const DropoutProblem& problem, const KernelRequest& request) {
  const std::int64_t samples = request.inputs[0].shape[0];
  const std::int64_t sample = buffer_elements(request.inputs[0]) / samples;
  const std::int64_t pieces = (sample + kPiece - 1) / kPiece;
  const auto body = [=](const BoundOperands& operands) {
    const StepControl* control = operands.control();
    const std::uint64_t key = dropout_key(control->seed, problem.layer);
    parallel_for(samples * pieces, [&](std::int64_t i) {
      const std::int64_t n = i / pieces, begin = i % pieces * kPiece;
      const std::uint64_t position = control->first_sample + static_cast<std::uint64_t>(n);
      scale_piece(operands.in(0) + n * sample + begin,
                  sample_factor(key, control->step, position, problem.rate),
                  operands.out(0) + n * sample + begin, std::min(kPiece, sample - begin));
    });
  };
  return host_kernel(body, {{0, 0}});
}

Kernel masked_scale(const char* operation, const DropoutProblem& problem, KernelRequest& request) {
  require_counts(operation, request, 1, 1);
  match_layout(operation, request.outputs[0], request.inputs[0]);
  require_shape(operation, "the output", request.outputs[0], request.inputs[0].shape);
  if (problem.whole_samples) return scale_samples(problem, request);
  const Shape shape = request.inputs[0].shape;
  const std::int64_t lanes = channel_lanes(operation, request.inputs[0]);
  const std::int64_t sample = buffer_elements(request.inputs[0]) / shape[0];
  // The number of elements that a thread computes at a time: a range of a row-major sample, or a
  // block of channels.
  const std::int64_t piece = lanes > 1 ? lanes * shape[2] * shape[3] : std::min(sample, kPiece);
  const std::int64_t pieces = (sample + piece - 1) / piece;
  const auto body = [=](const BoundOperands& operands) {
    const StepControl* control = operands.control();
    const Mask mask{dropout_key(control->seed, problem.layer), control->step, problem.rate,
                    1 / (1 - problem.rate)};
    parallel_for(shape[0] * pieces, [&](std::int64_t i) {
      const std::int64_t n = i / pieces, begin = i % pieces * piece;
      const std::uint64_t position = control->first_sample + static_cast<std::uint64_t>(n);
      const float* x = operands.in(0) + n * sample;
      float* y = operands.out(0) + n * sample;
      if (lanes == 1)
        drop_row_major(mask, position, begin, std::min(sample, begin + piece), x, y);
      else
        drop_block(mask, position, i % pieces * lanes, piece / lanes, lanes, x + begin, y + begin);
    });
  };
  return host_kernel(body, {{0, 0}});
}

}  // namespace

Kernel dropout_forward(const DropoutProblem& problem, KernelRequest& request) {
  return masked_scale("dropout_forward", problem, request);
}
Kernel dropout_backward(const DropoutProblem& problem, KernelRequest& request) {
  return masked_scale("dropout_backward", problem, request);
}

}  // namespace convoy::kernels::cpu
