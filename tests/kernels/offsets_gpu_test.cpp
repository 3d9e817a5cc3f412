// Tests the CUDA backend on tensors of more than 2^31 bytes or elements.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "kernels/batch_norm/batch_norm.h"
#include "kernels/pool/pool.h"
#include "tests/kernels/harness.h"
#include "tests/kernels/memory.h"

namespace convoy::kernels::testing {
namespace {

// Uses tensors of more than 2^31 bytes, so that a kernel with 32-bit offsets fails.
TEST(CudaOffsets, BeyondTwoGigabytes) {
  if (!gpu_present()) GTEST_SKIP() << "no GPU here";
  const Shape shape{3, 64, 2048, 2048};
  const std::size_t bytes = static_cast<std::size_t>(shape.elements()) * 4;
  const auto x = allocate(Backend::cuda, bytes), sums = allocate(Backend::cuda, 2 * 64 * sizeof(double));
  const auto control = allocate(Backend::cuda, sizeof(StepControl));
  const StepControl valid = all_valid(3);
  copy_in(Backend::cuda, control.get(), reinterpret_cast<const std::byte*>(&valid), sizeof valid);
  std::vector<float> sample(static_cast<std::size_t>(shape.elements() / 3));
  for (int n = 0; n < 3; ++n) {
    std::fill(sample.begin(), sample.end(), static_cast<float>(n + 1));
    copy_in(Backend::cuda, x.get() + n * bytes / 3, reinterpret_cast<const std::byte*>(sample.data()),
            bytes / 3);
  }
  KernelRequest request{{{DType::f32, shape, Layout::channels_last, nullptr}}, {f64({2, 64})}};
  const Kernel kernel = batch_norm_statistics(Backend::cuda, {}, request);
  const auto workspace = allocate(Backend::cuda, kernel.workspace_bytes);
  std::vector<void*> inputs{x.get()}, outputs{sums.get()};
  kernel.bind({inputs, outputs, workspace.get(), reinterpret_cast<const StepControl*>(control.get())})({});
  std::vector<double> result(2 * 64);
  copy_out(Backend::cuda, reinterpret_cast<std::byte*>(result.data()), sums.get(),
           result.size() * sizeof(double));
  EXPECT_EQ(result[63], 6.0 * 2048 * 2048);
  EXPECT_EQ(result[64], 14.0 * 2048 * 2048);
}

// Pools tensors of more than 2^31 elements, so that a kernel with 32-bit indices fails. Checks only
// the last image, because that has the largest indices.
TEST(CudaOffsets, OfPoolsBeyondTwoBillionElements) {
  if (!gpu_present()) GTEST_SKIP() << "no GPU here";
  const Shape x{129, 64, 512, 512}, y{129, 64, 256, 256};
  ASSERT_GT(x.elements(), std::int64_t{1} << 31);
  const auto bf16_of = [](float value) {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
  };
  // Gives values that differ within every window, so that each maximum is at one place only.
  const auto at = [](std::size_t h, std::size_t w, std::size_t c) {
    return static_cast<float>(((h * 512 + w) * 7 + c) % 251);
  };
  const auto image = static_cast<std::size_t>(x.elements() / 129), pooled = image / 4;
  std::vector<std::uint16_t> pixels(image), largest(pooled), gradient(image);
  for (std::size_t h = 0; h < 512; h += 2)
    for (std::size_t w = 0; w < 512; w += 2)
      for (std::size_t c = 0; c < 64; ++c) {
        float most = -1;
        std::size_t place = 0;
        for (const std::size_t pixel :
             {h * 512 + w, h * 512 + w + 1, (h + 1) * 512 + w, (h + 1) * 512 + w + 1}) {
          const float value = at(pixel / 512, pixel % 512, c);
          pixels[pixel * 64 + c] = bf16_of(value);
          if (value > most) most = value, place = pixel;
        }
        largest[(h / 2 * 256 + w / 2) * 64 + c] = bf16_of(most);
        gradient[place * 64 + c] = bf16_of(1);
      }
  const auto bytes_of = [](const Shape& shape, std::size_t element) {
    return static_cast<std::size_t>(shape.elements()) * element;
  };
  const auto input = allocate(Backend::cuda, bytes_of(x, 2)),
             output = allocate(Backend::cuda, bytes_of(y, 2)),
             places = allocate(Backend::cuda, bytes_of(y, 1));
  const auto run = [&](auto make, const std::vector<Shape>& inputs, const std::vector<Shape>& outputs,
                       std::vector<void*> from, std::vector<void*> to, bool backward) {
    KernelRequest request;
    for (const Shape& shape : inputs)
      request.inputs.push_back({backward && request.inputs.empty() ? DType::u8 : DType::bf16, shape,
                                Layout::channels_last, nullptr});
    for (const Shape& shape : outputs)
      request.outputs.push_back({DType::bf16, shape, Layout::channels_last, nullptr});
    make(Backend::cuda, PoolProblem{}, request).bind({from, to, nullptr})({});
  };
  const auto last_image = [](const std::shared_ptr<std::byte>& memory, std::size_t elements) {
    std::vector<std::uint16_t> values(elements);
    copy_out(Backend::cuda, reinterpret_cast<std::byte*>(values.data()), memory.get() + 128 * elements * 2,
             elements * 2);
    return values;
  };
  copy_in(Backend::cuda, input.get() + 128 * image * 2, reinterpret_cast<const std::byte*>(pixels.data()),
          image * 2);
  run(pool_forward, {x}, {y, y}, {input.get()}, {output.get(), places.get()}, false);
  EXPECT_TRUE(last_image(output, pooled) == largest);
  const std::vector<std::uint16_t> ones(pooled, bf16_of(1));
  copy_in(Backend::cuda, output.get() + 128 * pooled * 2, reinterpret_cast<const std::byte*>(ones.data()),
          pooled * 2);
  run(pool_backward, {y, y}, {x}, {places.get(), output.get()}, {input.get()}, true);
  EXPECT_TRUE(last_image(input, image) == gradient);
}

}  // namespace
}  // namespace convoy::kernels::testing
