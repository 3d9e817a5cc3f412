// Tests that resampling and normalising on the device give the bits of the host.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kernels/image_input_support.h"
#include "tests/kernels/memory.h"

namespace convoy::kernels::testing {
namespace {

class CudaImageInput : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!gpu_present()) GTEST_SKIP() << "no GPU here: the CUDA backend was not tested";
  }
  void expect_same_bytes(const Case& test) {
    EXPECT_EQ(run(Backend::cuda, Layout::channels_last, test).outputs[0].bytes,
              run_reference(test).outputs[0].bytes)
        << test.name;
  }
  Random random_{2026};
};

// Images of the output's size are only copied, others are resized by many scales. The kernel stores
// weights up to a scale of 7.5 only, and some scales are larger. One image has 65,536 columns.
TEST_F(CudaImageInput, ResamplesAtAnyScale) {
  struct Size {
    int height, width;
  };
  const std::vector<Size> sources = {{24, 40}, {17, 31}, {3, 5},     {1, 1},     {33, 75},   {47, 39},
                                     {90, 44}, {20, 90}, {180, 300}, {181, 301}, {700, 900}, {2, 65536}};
  for (const int channels : {1, 2, 3, 4, 5, 8})
    for (const Size output : {Size{24, 40}, {23, 37}, {3, 300}}) {
      CutBatch batch(channels);
      for (std::size_t i = 0; i < sources.size(); ++i)
        batch.add(axis_of(sources[i].height, output.height, 0, 0, output.height),
                  axis_of(sources[i].width, output.width, 0, 0, output.width), i % 2 == 0,
                  static_cast<int>(i % 3), random_);
      Case test = resample_case(batch, {std::ssize(sources), channels, output.height, output.width});
      expect_same_bytes(test);
      test.control.valid = 5;
      expect_same_bytes(test);
    }
}

// The kernel stores weights up to a scale of 7.5, for example 120 pixels to 16.
TEST_F(CudaImageInput, ResamplesAroundTheLimitOfStoredWeights) {
  CutBatch batch(3);
  const std::vector<int> extents = {119, 120, 121, 127, 128, 129};
  for (const int height : extents)
    for (const int width : extents)
      batch.add(axis_of(height, 16, 0, 0, 16), axis_of(width, 16, 0, 0, 16), width % 2 == 0, 1, random_);
  expect_same_bytes(resample_case(batch, {36, 3, 16, 16}));
}

TEST_F(CudaImageInput, CentreCropsAndPadding) {
  for (const int channels : {1, 3}) {
    CutBatch batch(channels);
    batch.add(axis_of(50, 36, 2, 0, 32), axis_of(75, 54, 11, 0, 33), false, 0, random_);
    batch.add(axis_of(50, 36, 4, 0, 32), axis_of(75, 54, 21, 0, 33), true, 7, random_);
    for (const bool flip : {false, true})
      for (const int place : {-40, -32, -5, 0, 4, 39, 45}) {
        const auto cropped = [&](int outputs) {
          AxisMap axis{.start = static_cast<double>(std::min(place, 0))};
          axis.begin = std::min(std::max(-place, 0), outputs);
          axis.end = std::clamp(40 - place, axis.begin, outputs);
          axis.extent = axis.size = axis.end - axis.begin;
          return axis;
        };
        batch.add(cropped(32), cropped(33), flip, 3, random_);
      }
    const std::int64_t samples = std::ssize(batch.transforms);
    const Case test = resample_case(batch, {samples, channels, 32, 33});
    expect_same_bytes(test);
    Tensor images = run_reference(test).outputs[0];
    images.bytes.clear();
    expect_matches_reference(normalise_case(images, batch.transforms, channels), {Backend::cuda});
  }
}

TEST_F(CudaImageInput, ALargeBatch) {
  CutBatch batch(3);
  for (int n = 0; n < 24; ++n)
    batch.add(axis_of(150 + 13 * n, 224, 0, 0, 224), axis_of(420 - 9 * n, 224, 0, 0, 224), n % 2 == 0, 0,
              random_);
  expect_same_bytes(resample_case(batch, {24, 3, 224, 224}));
}

TEST_F(CudaImageInput, Normalises) {
  for (const int channels : {1, 2, 3, 8})
    for (const std::int64_t padded : {channels, 4, 8, 11}) {
      if (padded < channels) continue;
      const Tensor images = random_images({14, channels, 37, 41}, random_);
      std::vector<SampleTransform> transforms(14);
      for (SampleTransform& transform : transforms) {
        transform.flip = random_.pick(0, 1);
        transform.rows.begin = random_.pick(0, 5);
        transform.rows.end = random_.pick(30, 37);
        transform.columns.begin = random_.pick(0, 5);
        transform.columns.end = random_.pick(30, 41);
        for (ErasedRectangle& erased : transform.erased)
          erased = {random_.pick(-9, 36), random_.pick(-9, 40), random_.pick(0, 20), random_.pick(0, 20)};
        if (random_.coin()) transform.ops[0].kind = ImageOpKind::equalize;
      }
      Case test = normalise_case(images, transforms, padded);
      test.control.valid = 12;
      expect_matches_reference(test, {Backend::cuda});
    }
}

}  // namespace
}  // namespace convoy::kernels::testing
