// The figure that users compare with other programs' memory: it must follow what is really touched.
#include "app/training/peak_memory.h"

#include <gtest/gtest.h>

#include <memory>

namespace convoy::app {
namespace {

// Touched pages count, and go on counting when they are given back; reserved ones do not count.
TEST(PeakMemory, IsThatOfTouchedPages) {
  const std::int64_t before = peak_resident_bytes();
  ASSERT_GT(before, 1 << 20);
  constexpr std::int64_t kMore = 64 << 20;
  const auto bytes = static_cast<std::size_t>(before + kMore);
  const auto reserved = std::make_unique_for_overwrite<char[]>(bytes);
  EXPECT_LT(peak_resident_bytes(), before + kMore);
  {
    const auto touched = std::make_unique_for_overwrite<char[]>(bytes);
    for (std::size_t i = 0; i < bytes; i += 4096) static_cast<volatile char*>(touched.get())[i] = 1;
    EXPECT_GE(peak_resident_bytes(), before + kMore);
  }
  EXPECT_GE(peak_resident_bytes(), before + kMore);
  EXPECT_LT(peak_resident_bytes(), 3 * before + 2 * kMore);
}

}  // namespace
}  // namespace convoy::app
