// Makes batches for the tests of resampling and normalising. Each sample is a cut (the part of a
// stored image that the output needs) and a transform, which says how the output is made from it.
#pragma once

#include <cstring>
#include <vector>

#include "kernels/device/bilinear.h"
#include "kernels/normalise/normalise.h"
#include "kernels/resample/resample.h"
#include "tests/kernels/harness.h"

namespace convoy::kernels::testing {

// Makes the resampling parameters of one axis: `extent` pixels are resized to `resized`, the first
// `skipped` of these are cut off, and outputs `begin` to `end` of the rest are wanted.
inline AxisMap axis_of(int extent, int resized, int skipped, int begin, int end) {
  AxisMap axis{.scale = static_cast<double>(extent) / resized, .skipped = skipped, .extent = extent};
  axis.begin = begin;
  axis.end = end;
  if (begin >= end) return axis;
  const BilinearTaps last = bilinear_span(axis, end - 1);
  axis.first = bilinear_span(axis, begin).first;
  axis.size = last.first + last.count - axis.first;
  return axis;
}

// Holds the pixels of a batch's cuts one after the other in memory, and their transforms.
class CutBatch {
 public:
  explicit CutBatch(int channels) : channels_(channels) {}
  // Appends a cut of random pixels. Its rows in memory are `slack` pixels longer than the cut.
  void add(const AxisMap& rows, const AxisMap& columns, bool flip, int slack, Random& random) {
    SampleTransform transform;
    transform.rows = rows;
    transform.columns = columns;
    transform.flip = flip ? 1 : 0;
    transform.pitch = columns.size + slack;
    transform.offset = std::ssize(bytes_);
    for (std::int64_t i = 0; i < std::int64_t{rows.size} * transform.pitch * channels_; ++i)
      bytes_.push_back(static_cast<std::byte>(random.pick(0, 255)));
    transforms.push_back(transform);
  }
  Tensor cuts() const {
    Tensor tensor{{DType::u8, {std::ssize(bytes_) + 1}, Layout::row_major, nullptr}, {}, bytes_};
    tensor.bytes.push_back(std::byte{});
    return tensor;
  }
  std::vector<SampleTransform> transforms;

 private:
  int channels_;
  std::vector<std::byte> bytes_;
};

inline Tensor operand_of(const std::vector<SampleTransform>& transforms) {
  Tensor operand{transforms_desc(std::ssize(transforms)), {}, {}};
  operand.bytes.resize(transforms.size() * sizeof(SampleTransform));
  std::memcpy(operand.bytes.data(), transforms.data(), operand.bytes.size());
  return operand;
}

inline Case resample_case(const CutBatch& batch, const Shape& images) {
  ResampleProblem problem;
  for (std::int64_t c = 0; c < images[1]; ++c) problem.fill.push_back(static_cast<std::uint8_t>(10 + c));
  return {.name = "resample_forward to " + images.to_string(),
          .maker = [=](Backend b, KernelRequest& r) { return resample_forward(b, problem, r); },
          .inputs = {batch.cuts(), operand_of(batch.transforms)},
          .outputs = {{DType::u8, images, Layout::channels_last, nullptr}},
          .control = all_valid(images[0]),
          .tolerance = 0};
}

inline Case normalise_case(const Tensor& images, const std::vector<SampleTransform>& transforms,
                           std::int64_t padded) {
  const Shape& shape = images.desc.shape;
  NormaliseProblem problem;
  for (std::int64_t c = 0; c < shape[1]; ++c) {
    problem.scale.push_back(0.0171f + 0.0013f * static_cast<float>(c));
    problem.shift.push_back(-2.1f + 0.3f * static_cast<float>(c));
  }
  return {.name = "normalise_forward " + shape.to_string() + " to " + std::to_string(padded),
          .maker = [=](Backend b, KernelRequest& r) { return normalise_forward(b, problem, r); },
          .inputs = {images, operand_of(transforms)},
          .outputs = {f32({shape[0], padded, shape[2], shape[3]})},
          .control = all_valid(shape[0]),
          .tolerance = 0};
}

inline Tensor random_images(const Shape& shape, Random& random) {
  Tensor images{{DType::u8, shape, Layout::channels_last, nullptr}, {}, {}};
  for (std::int64_t i = 0; i < shape.elements(); ++i) images.values.push_back(random.pick(0, 255));
  return images;
}

}  // namespace convoy::kernels::testing
