#include <gtest/gtest.h>

#include <type_traits>

#include "kernels/device/arena.h"
#include "kernels/device/errors.h"
#include "kernels/device/gpu_model.h"
#include "kernels/device/stream.h"

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

TEST(Device, AModelIsFoundByTheDevicesFullName) {
  ASSERT_NE(find_gpu_model("NVIDIA H200"), nullptr);
  EXPECT_EQ(find_gpu_model("cuda:1 NVIDIA H200")->multiprocessors, 132);
  EXPECT_EQ(find_gpu_model("NVIDIA GH200 480GB"), nullptr);
  EXPECT_EQ(find_gpu_model("NVIDIA H100 80GB HBM3"), nullptr);
}

}  // namespace
}  // namespace convoy::kernels
