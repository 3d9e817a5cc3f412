// `convoy info`: prints the layers of a network, or the libraries and settings of this build.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/model/network.h"

namespace convoy::app {

// Describes a layer of the network, at the batch size of the network. A multiply-add of forward
// counts as two operations.
struct LayerRow {
  std::string name, kind, attributes;
  std::vector<std::string> inputs;
  Shape output;
  std::int64_t parameters = 0;
  double forward_flops = 0;
  std::int64_t output_bytes = 0;  // bytes of the output in fp32
};

std::vector<LayerRow> layer_table(const Network& network);
// Returns the sums over the rows, as a row named "total".
LayerRow total_of(const std::vector<LayerRow>& rows);

}  // namespace convoy::app
