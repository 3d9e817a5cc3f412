// The expected numbers are worked out by hand. tests/data/loader/device_path_test.cpp compares this
// kernel with Pillow.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "tests/kernels/image_input_support.h"

namespace convoy::kernels::testing {
namespace {

CutBatch batch_of(const std::vector<int>& pixels, const AxisMap& rows, const AxisMap& columns, bool flip) {
  Random random(1);
  CutBatch batch(1);
  batch.add(rows, columns, flip, 0, random);
  EXPECT_EQ(batch.cuts().bytes.size(), pixels.size() + 1);
  return batch;
}

std::vector<double> resampled(const std::vector<int>& pixels, const AxisMap& rows, const AxisMap& columns,
                              std::int64_t height, std::int64_t width, bool flip = false) {
  Case test = resample_case(batch_of(pixels, rows, columns, flip), {1, 1, height, width});
  for (std::size_t i = 0; i < pixels.size(); ++i) test.inputs[0].bytes[i] = static_cast<std::byte>(pixels[i]);
  return run_reference(test).outputs[0].values;
}

TEST(ResampleKernel, ReducesByAveraging) {
  // Four pixels become two. The filter is a triangle; at the border its weights are 3/7, 3/7 and
  // 1/7.
  EXPECT_EQ(resampled({0, 70, 210, 70}, axis_of(1, 1, 0, 0, 1), axis_of(4, 2, 0, 0, 2), 1, 2),
            (std::vector<double>{60, 130}));
}

TEST(ResampleKernel, EnlargesBetweenNeighbours) {
  EXPECT_EQ(resampled({0, 100}, axis_of(1, 1, 0, 0, 1), axis_of(2, 4, 0, 0, 4), 1, 4),
            (std::vector<double>{0, 25, 75, 100}));
  EXPECT_EQ(resampled({0, 100}, axis_of(2, 4, 0, 0, 4), axis_of(1, 1, 0, 0, 1), 4, 1),
            (std::vector<double>{0, 25, 75, 100}));
}

TEST(ResampleKernel, MirrorsAndFillsPadding) {
  // The crop begins one pixel to the left of the image, which is three pixels wide. So output 0 is
  // padding.
  AxisMap columns{.start = -1, .extent = 3};
  columns.size = 3;
  columns.begin = 1;
  columns.end = 4;
  EXPECT_EQ(resampled({1, 2, 3}, axis_of(1, 1, 0, 0, 1), columns, 1, 5),
            (std::vector<double>{10, 1, 2, 3, 10}));
  EXPECT_EQ(resampled({1, 2, 3}, axis_of(1, 1, 0, 0, 1), columns, 1, 5, true),
            (std::vector<double>{10, 3, 2, 1, 10}));
}

TEST(ResampleKernel, SamplesThatAreNotValidAreFilled) {
  Random random(1);
  CutBatch batch(1);
  for (int n = 0; n < 2; ++n) batch.add(axis_of(2, 2, 0, 0, 2), axis_of(2, 2, 0, 0, 2), false, 0, random);
  batch.transforms[1].offset = std::int64_t{1} << 60;  // an offset that must not be read
  Case test = resample_case(batch, {2, 1, 2, 2});
  test.control.valid = 1;
  const std::vector<double> values = run_reference(test).outputs[0].values;
  EXPECT_EQ(std::vector<double>(values.begin() + 4, values.end()), (std::vector<double>{10, 10, 10, 10}));
}

TEST(ResampleKernel, RefusesOperandsThatDoNotFit) {
  const TensorDesc cuts{DType::u8, {100}, Layout::row_major, nullptr},
      images{DType::u8, {2, 3, 4, 4}, Layout::channels_last, nullptr},
      y{DType::f32, {2, 8, 4, 4}, Layout::any, nullptr};
  const auto resample = [&](TensorDesc in, std::int64_t samples, TensorDesc out, std::size_t fill) {
    KernelRequest request{{in, transforms_desc(samples)}, {out}};
    resample_forward(Backend::reference, {std::vector<std::uint8_t>(fill)}, request);
  };
  EXPECT_NO_THROW(resample(cuts, 2, images, 3));
  EXPECT_THROW(resample(images, 2, images, 3), std::invalid_argument);
  EXPECT_THROW(resample(cuts, 3, images, 3), std::invalid_argument);
  EXPECT_THROW(resample(cuts, 2, y, 3), std::invalid_argument);
  EXPECT_THROW(resample(cuts, 2, images, 4), std::invalid_argument);
}

}  // namespace
}  // namespace convoy::kernels::testing
