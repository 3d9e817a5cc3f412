// Writes a network with its values as an ONNX file (https://onnx.ai/onnx/repo-docs/IR.html) of
// opset 17. The input is images [batch, C, H, W], normalised as in training. The first output is
// the logits [batch, classes]. Auxiliary classifiers are further outputs. Parameters keep their
// names.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "app/model/network.h"

namespace convoy::app {

struct OnnxOptions {
  // Whether to fold each batch norm into the convolution before it, which then has a bias.
  bool fold_batch_norm = false;
  std::map<std::string, std::string> metadata;
};

// Writes the file and returns the number of elements in its parameters. `network` must come from
// make_network() and must not be fused. Parameters without values get random values from seed 1.
// Throws std::runtime_error that names the file if it cannot be written, or if the parameters take
// 2 GiB or more, which a single ONNX file cannot hold.
std::int64_t write_onnx(const std::filesystem::path& path, const Network& network,
                        const OnnxOptions& options);

}  // namespace convoy::app
