// The networks that `--model` knows.
#pragma once

#include <string>
#include <vector>

#include "app/model/network.h"

namespace convoy::app {

// `input` is [N, C, H, W]. Throws UsageError, which suggests the nearest name, if there is no such
// network, and std::runtime_error, which names network and layer, if it cannot take the input.
Network make_network(const std::string& name, const Shape& input, int classes);

// Returns the names of --model. "wrnDEPTH_WIDTH" stands for all networks such as "wrn28_10".
std::vector<std::string> network_names();

}  // namespace convoy::app
