#include <gtest/gtest.h>

#include <stdexcept>
#include <type_traits>
#include <vector>

#include "kernels/device/arena.h"
#include "kernels/device/errors.h"
#include "kernels/device/gpu_model.h"
#include "kernels/device/stream.h"
#include "kernels/dropout/dropout.h"

namespace convoy::kernels {
namespace {

static_assert(!std::is_convertible_v<void*, Stream> && !std::is_convertible_v<CUstream_st*, Stream> &&
              !std::is_convertible_v<std::nullptr_t, Stream>);
static_assert(Stream{}.get() == nullptr);

TEST(Device, HostMemoryThatIsNotThereIsAnOutOfMemoryThatNamesTheBytes) {
  const std::size_t bytes = std::size_t{1} << 62;
  try {
    const Arena arena(Backend::cpu, bytes);
    FAIL() << "reserved";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.bytes(), bytes);
  }
}

// A kernel that is bound without a StepControl must throw if it reads the control. It must not read
// the control of an earlier binding.
TEST(Device, AKernelThatReadsTheControlNeedsOneWhenItIsBound) {
  KernelRequest request{{{DType::f32, {4, 2}, Layout::row_major, nullptr}},
                        {{DType::f32, {4, 2}, Layout::row_major, nullptr}}};
  std::vector<float> x(8, 1), y(8, 0);
  const std::vector<void*> inputs{x.data()}, outputs{y.data()};
  for (const Backend backend : {Backend::reference, Backend::cpu}) {
    const Kernel kernel = dropout_forward(backend, {0.5f, 1}, request);
    EXPECT_THROW(kernel.bind({inputs, outputs})({}), std::logic_error);
    StepControl control;
    control.valid = 4;
    EXPECT_NO_THROW(kernel.bind({inputs, outputs, nullptr, &control})({}));
  }
}

TEST(Device, AModelIsFoundByTheDevicesFullName) {
  ASSERT_NE(find_gpu_model("NVIDIA H200"), nullptr);
  EXPECT_EQ(find_gpu_model("cuda:1 NVIDIA H200")->multiprocessors, 132);
  EXPECT_EQ(find_gpu_model("NVIDIA GH200 480GB"), nullptr);
  EXPECT_EQ(find_gpu_model("NVIDIA H100 80GB HBM3"), nullptr);
}

}  // namespace
}  // namespace convoy::kernels
