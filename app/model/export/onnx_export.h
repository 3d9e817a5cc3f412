// Writes a network with its values as an ONNX file (https://onnx.ai/onnx/repo-docs/IR.html) of
// opset 17. The input is images [batch, C, H, W], normalised as in training. The output is logits
// [batch, classes]; those of auxiliary classifiers are further outputs. Parameters keep their
// names.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "app/model/network.h"

namespace convoy::app {

struct OnnxOptions {
  // Folds a batch norm into the convolution before it, which then has a bias.
  bool fold_batch_norm = false;
  std::map<std::string, std::string> metadata;
};

// Writes the file and returns how many elements its parameters have. `network` is a result of
// make_network() that was not fused. Parameters without values are drawn from seed 1. Throws
// std::runtime_error that names the file if it cannot be written or if the parameters take 2 GiB or
// more, which a single ONNX file cannot hold.
std::int64_t write_onnx(const std::filesystem::path& path, const Network& network,
                        const OnnxOptions& options);

}  // namespace convoy::app
