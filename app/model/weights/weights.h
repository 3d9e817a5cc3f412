// Reads the named tensors of a model file, and gives them to a network as initial values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "app/model/network.h"

namespace convoy::app {

struct Weight {
  std::string name;
  std::vector<std::int64_t> shape;
  // Returns the values in row-major order. May throw std::runtime_error.
  std::function<std::vector<float>()> values;
};

std::vector<Weight> read_safetensors_weights(const std::filesystem::path& path);

struct WeightOptions {
  std::string file;  // the name of the file, for messages
  // The head is the last layer with parameters. Its weights have one row per class. head_rows[c] is
  // the row in the file for class c of the network. Empty if the rows keep their order.
  std::vector<std::int64_t> head_rows;
  // Whether the classes of the file differ from the network's. The head then keeps its random
  // initial values.
  bool redraw_head = false;
};

// Rows of a table that shows how well a file fits a network. Each row has a label and a text, such
// as the names of missing tensors.
using FitRows = std::vector<std::pair<std::string, std::string>>;

// Uses the values of the file as initial values of the network's parameters and statistics. Names
// must be equal, or equal after the translation of foreign_names.h. Shapes must be equal except for
// extents of 1 and flattened inputs. There are two exceptions:
//   - The last layer (head) keeps its random initial values if its number of classes differs.
//   - If the first convolution has another number of input channels, its channels are summed or
//     repeated (adapt_channels()).
// Returns which tensors were used and which were not. Throws std::runtime_error in one line that
// names the file if no tensor fits, or if values are not finite.
FitRows take_weights(Network& network, const std::vector<Weight>& weights, const WeightOptions& options);

// Changes the head of each output of a network that has its values already: reorders its rows, or
// removes its values so that they are drawn. Returns what was changed, or no rows.
FitRows change_heads(Network& network, const WeightOptions& options);

// Adapts the weights [filters, from, ...] of a first convolution from `from` to `to` input
// channels, as timm does for `from` = 3. If `to` is 1, the weights are summed over the channels.
// Otherwise the channels are repeated cyclically and multiplied by from / to. An image whose
// channels are all equal gives the same result as before. `pixels` is the number of elements in one
// channel of a filter.
std::vector<float> adapt_channels(const std::vector<float>& values, std::int64_t from, std::int64_t to,
                                  std::int64_t pixels);

}  // namespace convoy::app
