// Resamples images in plain loops. For each output column, computes the horizontal pass for all
// rows of the cut and then the vertical pass. A cut is the part of a stored image that a crop
// needs.
#include <cstring>

#include "kernels/device/bilinear.h"
#include "kernels/device/host_kernel.h"
#include "kernels/resample/resample.h"

namespace convoy::kernels::reference {
namespace {

struct Weights {
  std::int64_t first = 0;  // the first pixel of the cut that has a weight
  std::vector<std::int32_t> of_tap;
};

// Returns the weights of every output. Outputs in the padding have none.
std::vector<Weights> weights_of(const AxisMap& axis, std::int64_t outputs) {
  std::vector<Weights> all(static_cast<std::size_t>(outputs));
  for (std::int32_t output = axis.begin; output < axis.end; ++output) {
    const BilinearTaps taps = bilinear_taps(axis, output);
    Weights& weights = all[static_cast<std::size_t>(output)];
    weights.first = taps.first - axis.first;
    for (std::int32_t tap = 0; tap < taps.count; ++tap) weights.of_tap.push_back(bilinear_weight(taps, tap));
  }
  return all;
}

std::uint8_t weighted(const Weights& weights, const std::uint8_t* from, std::int64_t step) {
  std::int32_t sum = kHalfWeight;
  for (const std::int32_t weight : weights.of_tap) {
    sum += weight * *from;
    from += step;
  }
  return rounded_pixel(sum);
}

// Writes an image of shape [C, H, W] to `to`, in the order [H, W, C].
void resample(const std::uint8_t* cut, const SampleTransform& transform, const ResampleProblem& problem,
              const Shape& image, std::uint8_t* to) {
  const std::int64_t channels = image[1], height = image[2], width = image[3];
  const std::vector<Weights> rows = weights_of(transform.rows, height);
  const std::vector<Weights> columns = weights_of(transform.columns, width);
  std::vector<std::uint8_t> narrowed(static_cast<std::size_t>(transform.rows.size));
  for (std::int64_t w = 0; w < width; ++w)
    for (std::int64_t c = 0; c < channels; ++c) {
      const Weights& column = columns[static_cast<std::size_t>(transform.flip != 0 ? width - 1 - w : w)];
      for (std::int64_t y = 0; y < std::ssize(narrowed); ++y)
        narrowed[static_cast<std::size_t>(y)] =
            weighted(column, cut + (y * transform.pitch + column.first) * channels + c, channels);
      for (std::int64_t h = 0; h < height; ++h) {
        const Weights& row = rows[static_cast<std::size_t>(h)];
        const bool padding = row.of_tap.empty() || column.of_tap.empty();
        to[(h * width + w) * channels + c] = padding ? problem.fill[static_cast<std::size_t>(c)]
                                                     : weighted(row, narrowed.data() + row.first, 1);
      }
    }
}

}  // namespace

Kernel resample_forward(const ResampleProblem& problem, KernelRequest& request) {
  check_resample(problem, request);
  require_layout("resample_forward", request.inputs[0], Layout::row_major);
  require_layout("resample_forward", request.inputs[1], Layout::row_major);
  require_layout("resample_forward", request.outputs[0], Layout::channels_last);
  const Shape images = request.outputs[0].shape;
  return host_kernel([=](const BoundOperands& operands) {
    const StepControl* control = operands.control();
    const std::int64_t size = images.elements() / images[0];
    for (std::int64_t n = 0; n < images[0]; ++n) {
      SampleTransform transform;
      if (n < control->valid)
        std::memcpy(&transform, operands.in<std::uint8_t>(1) + n * sizeof transform, sizeof transform);
      resample(operands.in<std::uint8_t>(0) + transform.offset, transform, problem, images,
               operands.out<std::uint8_t>(0) + n * size);
    }
  });
}

}  // namespace convoy::kernels::reference
