// Runs the fuzz target for model files on its seeds and on altered seeds, so that every build tests
// it without a fuzzer.
#include <gtest/gtest.h>

#include "kernels/device/philox.h"
#include "tests/fuzz/targets.h"

namespace convoy::data::fuzz {
namespace {

TEST(OnnxFuzz, TheTargetSurvivesChangedInputs) {
  const std::vector<Bytes> seeds = onnx_seeds();
  for (const Bytes& seed : seeds) EXPECT_TRUE(run_onnx(seed));
  for (std::uint64_t i = 0; i < 2000; ++i) {
    Bytes bytes = seeds[i % seeds.size()];
    for (std::uint64_t edit = 0; edit <= i % 3; ++edit) {
      const kernels::Philox4 words = kernels::philox(i, edit);
      bytes[words.word[0] % bytes.size()] = static_cast<std::uint8_t>(words.word[1]);
    }
    run_onnx(bytes);
  }
}

}  // namespace
}  // namespace convoy::data::fuzz
