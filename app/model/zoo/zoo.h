// The networks that `--model` knows.
#pragma once

#include <string>
#include <vector>

#include "app/model/network.h"

namespace convoy::app {

// `input` is [N, C, H, W]. Throws std::runtime_error: an unknown name (the nearest ones are suggested), or an input
// that the network cannot take (network and layer are named).
Network make_network(const std::string& name, const Shape& input, int classes);

// What can be asked for. In "wrnDEPTH_WIDTH" the two words stand for numbers: "wrn28_10".
std::vector<std::string> network_names();

}  // namespace convoy::app
