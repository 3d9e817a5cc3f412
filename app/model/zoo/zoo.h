// The networks that `--model` knows.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "app/model/network.h"

namespace convoy::app {

// There is no network of that name; the message suggests the nearest ones. A mistake in the command line.
struct UnknownNetwork : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// `input` is [N, C, H, W]. Throws UnknownNetwork, or std::runtime_error naming network and layer when the network
// cannot take the input.
Network make_network(const std::string& name, const Shape& input, int classes);

// What can be asked for. In "wrnDEPTH_WIDTH" the two words stand for numbers: "wrn28_10".
std::vector<std::string> network_names();

}  // namespace convoy::app
