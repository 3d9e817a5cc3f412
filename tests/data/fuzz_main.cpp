// libFuzzer's entry points. The environment variable CONVOY_FUZZ_TARGET names the target.
#include <algorithm>
#include <cstdio>

#include "tests/data/fuzz_targets.h"

namespace {

using convoy::data::testing::FuzzTarget;

const FuzzTarget& target() {
  static const FuzzTarget chosen = [] {
    const char* name = std::getenv("CONVOY_FUZZ_TARGET");
    for (FuzzTarget& each : convoy::data::testing::fuzz_targets())
      if (name != nullptr && each.name == name) return std::move(each);
    std::fprintf(stderr, "CONVOY_FUZZ_TARGET: expected the name of a target in tests/data/fuzz_targets.h\n");
    std::exit(2);
  }();
  return chosen;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t room);

// Starts from a good input now and then, so that no folder of inputs is needed.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t room,
                                               unsigned seed) {
  if (size < 4 || seed % 16 == 0) {
    const auto& chosen = target().seeds[seed / 16 % target().seeds.size()];
    size = std::min(room, chosen.size());
    std::copy_n(chosen.begin(), size, data);
  }
  return LLVMFuzzerMutate(data, size, room);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // libFuzzer begins with nearly empty inputs, and gives up if these lead nowhere.
  target().run(size < 4 ? std::span<const std::uint8_t>(target().seeds[0]) : std::span(data, size));
  return 0;
}
