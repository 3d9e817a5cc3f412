// A short run of every fuzz target, the same in every build.
#include <random>

#include "tests/data/fuzz_targets.h"

namespace convoy::data {
namespace {

using namespace testing;

// Changes, cuts or repeats a part of the input.
void change(Bytes& input, std::mt19937& random) {
  if (input.empty()) return;
  const auto at = static_cast<std::ptrdiff_t>(random() % input.size());
  const auto length = std::min<std::ptrdiff_t>(1 + static_cast<std::ptrdiff_t>(random() % 16),
                                               static_cast<std::ptrdiff_t>(input.size()) - at);
  switch (random() % 6) {
    case 0:
      input.erase(input.begin() + at, input.begin() + at + length);
      break;
    case 1: {
      const Bytes part(input.begin() + at, input.begin() + at + length);
      input.insert(input.begin() + static_cast<std::ptrdiff_t>(random() % input.size()), part.begin(),
                   part.end());
      break;
    }
    case 2:
      input[static_cast<std::size_t>(at)] ^= static_cast<std::uint8_t>(1U << random() % 8);
      break;
    default:
      input[static_cast<std::size_t>(at)] = static_cast<std::uint8_t>(random());
  }
}

TEST(Fuzz, TargetsSurviveChangedInputs) {
  for (const FuzzTarget& target : fuzz_targets()) {
    std::mt19937 random(1);
    for (const Bytes& seed : target.seeds) {
      EXPECT_NO_THROW(target.run(seed)) << target.name;
      for (int trial = 0; trial < 60; ++trial) {
        Bytes input = seed;
        for (int changes = 0; changes < 1 + trial % 4; ++changes) change(input, random);
        EXPECT_NO_THROW(target.run(input)) << target.name;
      }
    }
  }
}

}  // namespace
}  // namespace convoy::data
