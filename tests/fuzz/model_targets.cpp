// Lists the targets of the program model_fuzz.
#include "tests/fuzz/targets.h"

namespace convoy::data::fuzz {

const std::vector<Target>& targets() {
  static const std::vector<Target> all{{"onnx", run_onnx, onnx_seeds}};
  return all;
}

}  // namespace convoy::data::fuzz
