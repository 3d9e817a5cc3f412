// Runs the fuzz targets on their seed files and on a fixed series of mutations of these.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/device/philox.h"
#include "tests/fuzz/targets.h"

namespace convoy::data::fuzz {
namespace {

Bytes mutated(Bytes bytes, std::uint64_t seed) {
  auto random = [&, draw = std::uint64_t{0}]() mutable { return kernels::philox(seed, draw++).word[0]; };
  for (std::uint32_t edits = random() % 4 + 1; edits > 0 && !bytes.empty(); --edits) {
    const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(random() % bytes.size());
    switch (random() % 4) {
      case 0:
        *at = static_cast<std::uint8_t>(random());
        break;
      case 1:
        bytes.erase(at, at + std::min<std::ptrdiff_t>(bytes.end() - at, random() % 64 + 1));
        break;
      case 2:
        *at ^= static_cast<std::uint8_t>(1u << random() % 8);
        break;
      default: {
        const Bytes piece(at, at + std::min<std::ptrdiff_t>(bytes.end() - at, random() % 600));
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(random() % bytes.size()), piece.begin(),
                     piece.end());
      }
    }
  }
  return bytes;
}

class Fuzz : public ::testing::TestWithParam<Target> {};

TEST_P(Fuzz, TargetsSurviveChangedInputs) {
  const auto seeds = GetParam().seeds();
  EXPECT_TRUE(GetParam().run(seeds[0]));
  for (const Bytes& seed : seeds) GetParam().run(seed);
  for (std::uint64_t i = 0; i < std::max<std::uint64_t>(300, 30 * seeds.size()); ++i)
    GetParam().run(mutated(seeds[i % seeds.size()], i));
}

INSTANTIATE_TEST_SUITE_P(All, Fuzz, ::testing::ValuesIn(targets()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace convoy::data::fuzz
