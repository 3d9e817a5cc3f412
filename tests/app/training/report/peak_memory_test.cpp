// The figure that users compare with other programs' memory: it must follow what is really touched.
#include "app/training/report/peak_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace convoy::app {
namespace {

// Touched pages count, and go on counting when they are given back; reserved ones do not count.
TEST(PeakMemory, IsThatOfTouchedPages) {
  const std::int64_t before = peak_resident_bytes();
  ASSERT_GT(before, 1 << 20);
  // More than what a sanitizer touches for memory that is merely reserved, an eighth of it.
  const std::int64_t more = std::max<std::int64_t>(64 << 20, before / 4);
  const auto bytes = static_cast<std::size_t>(before + more);
  const auto reserved = std::make_unique_for_overwrite<char[]>(bytes);
  EXPECT_LT(peak_resident_bytes(), before + more);
  {
    const auto touched = std::make_unique_for_overwrite<char[]>(bytes);
    for (std::size_t i = 0; i < bytes; i += 4096) static_cast<volatile char*>(touched.get())[i] = 1;
    EXPECT_GE(peak_resident_bytes(), before + more);
  }
  EXPECT_GE(peak_resident_bytes(), before + more);
  EXPECT_LT(peak_resident_bytes(), 3 * before + 2 * more);
}

}  // namespace
}  // namespace convoy::app
