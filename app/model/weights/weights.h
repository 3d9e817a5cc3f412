// Named tensors of a model file, and the first values that a network takes from them.
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
  std::function<std::vector<float>()> values;  // row-major; may throw std::runtime_error
};

std::vector<Weight> read_safetensors_weights(const std::filesystem::path& path);

struct WeightOptions {
  std::string file;  // for messages
  // The file's row of the head for each class of the network. Empty: the same rows, if there are as
  // many.
  std::vector<std::int64_t> head_rows;
  bool redraw_head = false;  // the file's classes are others
};

// A line of the table that says how a file and a network fit: what it is about, and the names.
using FitRows = std::vector<std::pair<std::string, std::string>>;

// Gives the network's parameters and statistics the file's values as their first ones. A name fits
// as it is, or by the rules of foreign_names.h. Shapes must be equal up to extents of 1 and to
// flattened inputs, with two exceptions: a head for another number of classes is drawn, and the
// first convolution's channels are summed or repeated. Returns what was taken and what was not.
// Throws std::runtime_error, one line that names the file, if nothing fits.
FitRows take_weights(Network& network, const std::vector<Weight>& weights, const WeightOptions& options);

// Adapts the weights [filters, from, ...] of a first convolution to `to` channels, as timm does for
// three: the sum for one channel, else the channels in turn, times from / to, so that an image with
// equal channels gives the same result. `pixels`: elements of one channel of a filter.
std::vector<float> adapt_channels(const std::vector<float>& values, std::int64_t from, std::int64_t to,
                                  std::int64_t pixels);

}  // namespace convoy::app
