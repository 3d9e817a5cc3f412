// The networks that `--model` knows.
#pragma once

#include <string>
#include <vector>

#include "app/model/network.h"

namespace convoy::app {

// `input` is [N, C, H, W]. Throws UsageError where there is no network of that name, suggesting the nearest, or
// std::runtime_error naming network and layer when the network cannot take the input.
Network make_network(const std::string& name, const Shape& input, int classes);

// What can be asked for. In "wrnDEPTH_WIDTH" the two words stand for numbers: "wrn28_10".
std::vector<std::string> network_names();

}  // namespace convoy::app
