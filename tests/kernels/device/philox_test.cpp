#include "kernels/device/philox.h"

#include <gtest/gtest.h>

namespace convoy::kernels {
namespace {

// The expected words are the known answers of the Random123 distribution (kat_vectors, philox4x32
// 10).
TEST(Philox, GivesThePublishedWords) {
  const Philox4 zeros = philox(0, 0, 0);
  EXPECT_EQ(zeros.word[0], 0x6627e8d5u);
  EXPECT_EQ(zeros.word[1], 0xe169c58du);
  EXPECT_EQ(zeros.word[2], 0xbc57ac4cu);
  EXPECT_EQ(zeros.word[3], 0x9b00dbd8u);
  const Philox4 ones = philox(~0ull, ~0ull, ~0ull);
  EXPECT_EQ(ones.word[0], 0x408f276du);
  EXPECT_EQ(ones.word[1], 0x41c83b0eu);
  EXPECT_EQ(ones.word[2], 0xa20bc7c6u);
  EXPECT_EQ(ones.word[3], 0x6d5451fdu);
}

}  // namespace
}  // namespace convoy::kernels
