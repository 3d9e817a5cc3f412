// Checks that the device's kernels make the same images as the host, to the bit. Their input is the
// cut (the pixels that a sample needs) and a transform for each sample. The reference kernels run
// here; tests/kernels/image_input_gpu_test.cpp compares those of the GPU with them.
#include <algorithm>
#include <array>

#include "data/loader/augmentation.h"
#include "kernels/normalise/normalise.h"
#include "kernels/resample/resample.h"
#include "tests/data/support.h"

namespace convoy::data {
namespace {

using namespace testing;

constexpr std::int64_t kSamples = 12;
const std::vector<float> kMean{0.4f, 0.5f, 0.6f}, kStd{0.2f, 0.25f, 0.3f};

// Makes the images with two kernels, resampling and normalising. Returns float32 [N, C, H, W].
std::vector<float> on_device(const Bytes& cuts, const std::vector<kernels::SampleTransform>& transforms,
                             ImageShape output, const std::vector<ScaleShift>& factors) {
  kernels::StepControl control;
  control.valid = static_cast<std::int32_t>(transforms.size());
  const std::int64_t samples = std::ssize(transforms);
  const kernels::Shape shape{samples, output.channels, output.height, output.width};
  const kernels::TensorDesc operand = kernels::transforms_desc(samples);
  const kernels::TensorDesc images{kernels::DType::u8, shape, kernels::Layout::channels_last, nullptr};
  Bytes resampled(static_cast<std::size_t>(shape.elements()));
  std::vector<float> result(resampled.size());
  kernels::NormaliseProblem problem;
  for (const ScaleShift& factor : factors) {
    problem.scale.push_back(factor.scale);
    problem.shift.push_back(factor.shift);
  }
  const auto launch = [&](const kernels::Kernel& kernel, const void* in, void* out) {
    const std::array<void*, 2> inputs{const_cast<void*>(in),
                                      const_cast<kernels::SampleTransform*>(transforms.data())};
    const std::array<void*, 1> outputs{out};
    kernel.bind({inputs, outputs, nullptr, &control})(kernels::Stream{});
  };
  kernels::KernelRequest first{
      {{kernels::DType::u8, {std::ssize(cuts)}, kernels::Layout::row_major, nullptr}, operand}, {images}};
  launch(kernels::resample_forward(kernels::Backend::reference, {nearest_to_zero(factors)}, first),
         cuts.data(), resampled.data());
  kernels::KernelRequest second{{images, operand},
                                {{kernels::DType::f32, shape, kernels::Layout::row_major, nullptr}}};
  launch(kernels::normalise_forward(kernels::Backend::reference, problem, second), resampled.data(),
         result.data());
  return result;
}

TEST(DevicePath, HasTheHostsBits) {
  for (const char* words : {"crop:4,flip,cutout:8,erase:0.5", "resized-crop,flip,erase:0.5", "none"})
    for (const std::int64_t channels : {1, 3})
      for (const int size : {32, 57}) {
        const ImageShape stored{53, 61, channels};
        Augmentation augmentation = parse_augmentation(words);
        augmentation.height = augmentation.width = size;
        augmentation.resize_short = size + 7;
        const std::vector<float> mean(kMean.begin(), kMean.begin() + channels),
            std(kStd.begin(), kStd.begin() + channels);
        Augmenter augmenter(augmentation, stored, mean, std, ImageLayout::row_major);
        const ImageShape output = augmenter.output_shape();
        const auto values = static_cast<std::size_t>(output.bytes());
        std::vector<float> expected(values * kSamples);
        std::vector<kernels::SampleTransform> transforms;
        Bytes cuts;
        for (std::int64_t sample = 0; sample < kSamples; ++sample) {
          const Bytes image =
              random_bytes(static_cast<std::size_t>(stored.bytes()), static_cast<std::uint64_t>(sample));
          const auto parameters = draw(augmentation, stored, 3, 1, sample);
          augmenter.apply(image.data(), place_in_whole(parameters, stored, output, 0),
                          expected.data() + values * static_cast<std::size_t>(sample));
          PlacedSample placed = place(parameters, stored, output);
          placed.transform.offset = std::ssize(cuts);
          for (std::int64_t y = placed.cut.y; y < placed.cut.y + placed.cut.height; ++y) {
            const auto row = image.begin() + (y * stored.width + placed.cut.x) * channels;
            cuts.insert(cuts.end(), row, row + placed.cut.width * channels);
          }
          transforms.push_back(placed.transform);
        }
        EXPECT_EQ(on_device(cuts, transforms, output, normalisation(mean, std)), expected)
            << words << ", " << channels << " channels, " << size;
      }
}

}  // namespace
}  // namespace convoy::data
