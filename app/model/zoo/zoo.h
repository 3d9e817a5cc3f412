// The networks that `--model` knows.
#pragma once

#include <string>
#include <vector>

#include "app/model/network.h"

namespace convoy::app {

// `input` is [N, C, H, W]. A name that ends in ".onnx" is a file (app/model/import/model_file.h).
// Throws UsageError, which suggests the nearest name, if there is no such network, and
// std::runtime_error, which names network and layer, if it cannot take the input.
Network make_network(const std::string& name, const Shape& input, int classes);

// A network as a verb's flags ask for it. 0 means that a flag is not given: then a file's own image
// and classes count, and for others images of 3 channels and 224 pixels a side, and 1000 classes
// above 64 pixels, else 10.
struct NetworkRequest {
  std::string name;
  std::int64_t batch = 1, channels = 0, size = 0, classes = 0;
};
Network make_network(const NetworkRequest& request);
// Returns the pixels a side of images if nothing asks for others.
std::int64_t default_size(const std::string& name);

// Returns the names of --model. "wrnDEPTH_WIDTH" stands for all networks such as "wrn28_10".
std::vector<std::string> network_names();

}  // namespace convoy::app
