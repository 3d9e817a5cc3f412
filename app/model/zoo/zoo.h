// Makes the networks that `--model` names.
#pragma once

#include <string>
#include <vector>

#include "app/model/network.h"

namespace convoy::app {

// Returns a network for `input`, [N, C, H, W]. A name that ends in ".onnx" is a file
// (app/model/import/model_file.h). Throws UsageError that suggests the nearest name if there is no
// such network. Throws std::runtime_error that names network and layer if the network cannot take
// the input.
Network make_network(const std::string& name, const Shape& input, int classes);

// A network as the flags of a verb request it. 0 means that a flag is not given. Then a model file
// keeps its own images and classes. A network of the zoo gets 3 channels, 224 x 224 pixels, and
// 1000 classes if images have more than 64 x 64 pixels, else 10.
struct NetworkRequest {
  std::string name;
  std::int64_t batch = 1, channels = 0, size = 0, classes = 0;
};
Network make_network(const NetworkRequest& request);
// Returns the default side of images in pixels.
std::int64_t default_size(const std::string& name);

// Returns the width of a network, 10 for "wrn28_10", or 0 if networks of this name have no width.
// Throws UsageError for names such as "wrn28".
std::int64_t width_of(const std::string& name);
// Returns the name of the network with another width: "wrn28_2" for "wrn28_10" and 2. Throws
// UsageError if the network has no width, or if it cannot have this one.
std::string with_width(const std::string& name, std::int64_t width);
// Returns the names for --model. "wrnDEPTH_WIDTH" stands for all networks such as "wrn28_10".
std::vector<std::string> network_names();

}  // namespace convoy::app
