// Tests that image operations on the device give the bits of the host.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kernels/image_ops_support.h"
#include "tests/kernels/memory.h"

namespace convoy::kernels::testing {
namespace {

// The images have one or three channels. The bytes of a row are a multiple of four or not, and some
// images have only border pixels.
const std::vector<Shape> kShapes = {{8, 3, 224, 224}, {8, 3, 37, 50}, {8, 3, 41, 36}, {8, 1, 33, 20},
                                    {8, 1, 19, 23},   {8, 3, 2, 8},   {8, 3, 5, 1},   {8, 1, 1, 4}};

std::vector<ImageOp> operations() {
  std::vector<ImageOp> ops;
  for (const float factor : {0.01f, 0.37f, 1.63f, 1.99f, 3.0f})
    for (const ImageOpKind kind :
         {ImageOpKind::brightness, ImageOpKind::contrast, ImageOpKind::saturation, ImageOpKind::sharpness})
      ops.push_back({kind, factor, {}});
  for (const float turn : {0.f, 1.f, 77.f, 128.f, 255.f}) ops.push_back({ImageOpKind::hue, turn, {}});
  for (const float mask : {128.f, 192.f, 252.f}) ops.push_back({ImageOpKind::posterize, mask, {}});
  for (const float level : {0.f, 93.5f, 255.f}) ops.push_back({ImageOpKind::solarize, level, {}});
  ops.push_back({ImageOpKind::autocontrast, 0, {}});
  ops.push_back({ImageOpKind::equalize, 0, {}});
  // These operations are shears, shifts, and turns by about 20, 90 and 135 degrees.
  ops.push_back({ImageOpKind::affine, 0, {65536, 64881, 65208, 0, 65536, 32768}});
  ops.push_back({ImageOpKind::affine, 0, {65536, 0, 32768, -21627, 65536, 21954}});
  ops.push_back({ImageOpKind::affine, 0, {65536, 0, 32768 - 5 * 65536, 0, 65536, 32768}});
  ops.push_back({ImageOpKind::affine, 0, {61584, -22415, 500000, 22415, 61584, -200000}});
  ops.push_back({ImageOpKind::affine, 0, {0, -65536, 36 * 65536 + 32768, 65536, 0, 32768}});
  ops.push_back({ImageOpKind::affine, 0, {-46341, -46341, 3000000, 46341, -46341, 1200000}});
  return ops;
}

class CudaImageOps : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!gpu_present()) GTEST_SKIP() << "no GPU here: the CUDA backend was not tested";
  }
  void expect_same_bytes(const Case& test, const std::string& what) {
    EXPECT_EQ(run(Backend::cuda, Layout::channels_last, test).outputs[0].bytes,
              run_reference(test).outputs[0].bytes)
        << test.name << ", " << what;
  }
};

TEST_F(CudaImageOps, EveryOperation) {
  const std::vector<ImageOp> ops = operations();
  for (const Shape& shape : kShapes)
    for (std::size_t first = 0; first < ops.size(); first += 2) {
      // Two operations are tested at a time, each on four kinds of pictures.
      std::vector<SampleTransform> transforms(8);
      for (std::size_t n = 0; n < 8; ++n) transforms[n].ops[0] = ops[std::min(first + n / 4, ops.size() - 1)];
      expect_same_bytes(image_ops(shape, transforms, 1), "from operation " + std::to_string(first));
    }
}

TEST_F(CudaImageOps, ListsOfAnyLength) {
  const std::vector<ImageOp> ops = operations();
  for (const Shape& shape : kShapes)
    for (int trial = 0; trial < 6; ++trial) {
      std::vector<SampleTransform> transforms(8);
      for (std::size_t n = 0; n < 8; ++n)
        for (std::size_t i = 0; i < n + (trial > 2); ++i)
          transforms[n].ops[i] =
              ops[philox(7, n * 8 + i, static_cast<std::uint64_t>(trial)).word[0] % ops.size()];
      Case test = image_ops(shape, transforms, kMostImageOps);
      // In every other trial the last sample is padding, whose operations must not be read.
      test.control.valid = 8 - trial % 2;
      expect_same_bytes(test, "trial " + std::to_string(trial));
    }
}

// Tests the rounding of hue and saturation for all 2^24 colours, a quarter of them at a time.
TEST_F(CudaImageOps, EveryColour) {
  constexpr std::int64_t kSide = 2048, kPixels = kSide * kSide;
  for (const ImageOp& op : {ImageOp{ImageOpKind::hue, 30, {}}, ImageOp{ImageOpKind::saturation, 1.77f, {}}})
    for (std::int64_t quarter = 0; quarter < 4; ++quarter) {
      std::vector<SampleTransform> transforms(1);
      transforms[0].ops[0] = op;
      Case test = image_ops({1, 3, kSide, kSide}, transforms, 1);
      for (std::int64_t i = 0; i < 3 * kPixels; ++i)
        test.inputs[0].values[i] =
            static_cast<double>((quarter * kPixels + i % kPixels) >> 8 * (i / kPixels) & 255);
      expect_same_bytes(test, op.kind == ImageOpKind::hue ? "hue" : "saturation");
    }
}

}  // namespace
}  // namespace convoy::kernels::testing
