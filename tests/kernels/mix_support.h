// Makes the operand with the parameters by which samples are mixed (mixup, cutmix).
#pragma once

#include <cstring>

#include "kernels/device/mix_parameters.h"
#include "tests/kernels/harness.h"

namespace convoy::kernels::testing {

inline Tensor mix_operand(const MixParameters& mix) {
  Tensor operand{{DType::i32, {kMixWords}, Layout::row_major, nullptr}, {}, {}};
  operand.bytes.resize(sizeof mix);
  std::memcpy(operand.bytes.data(), &mix, sizeof mix);
  return operand;
}

}  // namespace convoy::kernels::testing
