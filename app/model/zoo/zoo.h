// Makes the networks that `--model` names.
#pragma once

#include <string>
#include <vector>

#include "app/model/network.h"

namespace convoy::app {

// Returns a network for `input`, [N, C, H, W]. A name that ends in ".onnx" is the path of a model
// file (app/model/import/model_file.h). Throws UsageError that suggests similar names if no network
// has this name. Throws std::runtime_error that names network and layer if the network cannot take
// the input.
Network make_network(const std::string& name, const Shape& input, int classes);

// A network as the flags of a subcommand request it. 0 means that a flag is not given. Then a model
// file keeps its own image size and classes. A network of the zoo gets 3 channels and 224 x 224
// pixels; it gets 1000 classes if images have more than 64 x 64 pixels, else 10.
struct NetworkRequest {
  std::string name;
  std::int64_t batch = 1, channels = 0, size = 0, classes = 0;
};
Network make_network(const NetworkRequest& request);
// Returns the default side in pixels of the images of a network.
std::int64_t default_size(const std::string& name);

// Returns the width in the name of a wide ResNet, for example 10 for "wrn28_10", and 0 for other
// networks. Throws UsageError for names of impossible ones, such as "wrn28" or "wrn27_10".
std::int64_t width_of(const std::string& name);
// Returns the name of the same network with another width: "wrn28_2" for "wrn28_10" and 2. Throws
// UsageError if the network has no width, or if `width` is not possible.
std::string with_width(const std::string& name, std::int64_t width);
// Returns the values that --model takes. "wrnDEPTH_WIDTH" stands for all names such as "wrn28_10".
std::vector<std::string> network_names();

}  // namespace convoy::app
