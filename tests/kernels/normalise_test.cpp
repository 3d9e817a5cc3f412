// The expected numbers are worked out by hand. tests/data/loader/device_path_test.cpp compares this
// kernel with Pillow.
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "tests/kernels/image_input_support.h"

namespace convoy::kernels::testing {
namespace {

TEST(NormaliseKernel, ScalesShiftsAndBlanks) {
  const Tensor images{
      {DType::u8, {2, 1, 2, 3}, Layout::channels_last, nullptr}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {}};
  std::vector<SampleTransform> transforms(2);
  for (SampleTransform& transform : transforms)
    transform.rows.end = transform.columns.end = 2;  // the last column is padding
  transforms[0].erased[1] = {-1, 0, 2, 1};
  transforms[1].flip = 1;  // mirrored, so the first column is padding
  const NormaliseProblem problem{{0.5f}, {-8}};
  Case test = normalise_case(images, transforms, 2);
  test.maker = [=](Backend b, KernelRequest& r) { return normalise_forward(b, problem, r); };
  EXPECT_EQ(run_reference(test).outputs[0].values,
            (std::vector<double>{0, -7.5, 0,  -6.5, -6, 0,    0, 0, 0, 0, 0, 0,  //
                                 0, -4.5, -4, 0,    -3, -2.5, 0, 0, 0, 0, 0, 0}));
  test.control.valid = 1;
  const std::vector<double> values = run_reference(test).outputs[0].values;
  EXPECT_EQ(std::vector<double>(values.begin() + 12, values.end()), std::vector<double>(12, 0.0));
}

// If an image operation may have moved the padding, normalising must not set the padding to zero.
TEST(NormaliseKernel, PaddingStaysIfThereAreOperations) {
  const Tensor images{{DType::u8, {1, 1, 1, 2}, Layout::channels_last, nullptr}, {20, 30}, {}};
  std::vector<SampleTransform> transforms(1);
  transforms[0].ops[0].kind = ImageOpKind::affine;
  const NormaliseProblem problem{{0.5f}, {-8}};
  Case test = normalise_case(images, transforms, 1);
  test.maker = [=](Backend b, KernelRequest& r) { return normalise_forward(b, problem, r); };
  EXPECT_EQ(run_reference(test).outputs[0].values, (std::vector<double>{2, 7}));
}

TEST(NormaliseKernel, RefusesOperandsThatDoNotFit) {
  const TensorDesc images{DType::u8, {2, 3, 4, 4}, Layout::channels_last, nullptr},
      y{DType::f32, {2, 8, 4, 4}, Layout::any, nullptr};
  const auto normalise = [&](TensorDesc in, std::int64_t samples, TensorDesc out, std::size_t factors) {
    KernelRequest request{{in, transforms_desc(samples)}, {out}};
    const std::vector<float> values(factors);
    normalise_forward(Backend::reference, {values, values}, request);
  };
  EXPECT_NO_THROW(normalise(images, 2, y, 3));
  EXPECT_THROW(normalise(images, 1, y, 3), std::invalid_argument);
  EXPECT_THROW(normalise(images, 2, y, 1), std::invalid_argument);
  EXPECT_THROW(normalise(images, 2, {DType::f32, {2, 2, 4, 4}, Layout::any, nullptr}, 3),
               std::invalid_argument);
  EXPECT_THROW(normalise(images, 2, {DType::f32, {2, 8, 4, 5}, Layout::any, nullptr}, 3),
               std::invalid_argument);
  EXPECT_THROW(normalise(y, 2, y, 3), std::invalid_argument);
}

}  // namespace
}  // namespace convoy::kernels::testing
