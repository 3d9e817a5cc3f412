// Tests that every sample of a batch gets its own image operations, with the bits of the host's
// code.
#include "kernels/image_ops/image_ops.h"

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>

#include "kernels/device/image_ops.h"
#include "tests/kernels/image_ops_support.h"

namespace convoy::kernels::testing {
namespace {

TEST(ImageOpsForward, GivesEverySampleItsOperations) {
  const Shape shape{4, 3, 9, 7};
  std::vector<SampleTransform> transforms(4);
  transforms[0].ops[0] = {ImageOpKind::solarize, 100, {}};
  transforms[0].ops[1] = {ImageOpKind::affine, 0, {0, 65536, 0, -65536, 0, 7 * 65536}};
  transforms[2].ops[0] = {ImageOpKind::saturation, 0.3f, {}};
  transforms[3].ops[0] = {ImageOpKind::brightness, 0.5f, {}};  // this sample is padding
  Case test = image_ops(shape, transforms, kMostImageOps);
  test.control.valid = 3;
  const Result result = run_reference(test);
  for (int n = 0; n < 4; ++n) {
    std::vector<std::uint8_t> expected = bytes_of_sample(test.inputs[0], n);
    if (n < 3) ImageOps(9, 7, 3).apply(transforms[n].ops, expected.data());
    EXPECT_EQ(bytes_of_sample(result.outputs[0], n), expected) << "sample " << n;
    EXPECT_EQ(expected == bytes_of_sample(test.inputs[0], n), n == 1 || n == 3);
  }
}

// The problem states the largest number of operations in a list. The kernel has no workspace for
// more, so it must ignore the rest of a longer list.
TEST(ImageOpsForward, StopsAfterTheMostOperations) {
  const ImageOp posterize{ImageOpKind::posterize, 128, {}}, invert{ImageOpKind::solarize, 0, {}};
  std::vector<SampleTransform> both(1), first(1);
  both[0].ops[0] = first[0].ops[0] = posterize;
  both[0].ops[1] = invert;
  const auto result = [&](const auto& transforms, int most) {
    return run_reference(image_ops({1, 1, 4, 5}, transforms, most)).outputs[0].values;
  };
  EXPECT_EQ(result(both, 1), result(first, 1));
  EXPECT_NE(result(both, 2), result(first, 2));
}

TEST(ImageOpsForward, RefusesWhatItCannotDo) {
  const auto make = [](auto change, int most = 2) {
    KernelRequest request;
    const TensorDesc images{DType::u8, {2, 3, 4, 5}, Layout::any, nullptr};
    request.inputs = {images, {DType::u8, {2, sizeof(SampleTransform)}, Layout::any, nullptr}};
    request.outputs = {images};
    change(request);
    return image_ops_forward(Backend::reference, {most}, request);
  };
  const auto nothing = [](KernelRequest&) {};
  EXPECT_NO_THROW(make(nothing));
  EXPECT_THROW(make(nothing, 0), std::invalid_argument);
  EXPECT_THROW(make(nothing, kMostImageOps + 1), std::invalid_argument);
  const auto expect_refusal = [&](auto change) { EXPECT_THROW(make(change), std::invalid_argument); };
  expect_refusal([](KernelRequest& r) { r.inputs[0].dtype = DType::f32; });
  expect_refusal([](KernelRequest& r) { r.inputs[0].shape = r.outputs[0].shape = {2, 4, 4, 5}; });
  expect_refusal([](KernelRequest& r) { r.inputs[0].shape = r.outputs[0].shape = {2, 3, 1, 9000}; });
  expect_refusal([](KernelRequest& r) { r.inputs[0].layout = Layout::row_major; });
  expect_refusal([](KernelRequest& r) { r.inputs[1].shape = {2, 16}; });
  expect_refusal([](KernelRequest& r) { r.outputs[0].shape = {2, 3, 5, 4}; });
}

}  // namespace
}  // namespace convoy::kernels::testing
