#include "app/model/drop_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "app/errors.h"

namespace convoy::app {
namespace {

const Layer& layer_at(const Network& network, LayerId id) {
  return network.layers()[static_cast<std::size_t>(id)];
}

bool is_drop_path(const Layer& layer) {
  const auto* dropout = std::get_if<Dropout>(&layer.op);
  return dropout != nullptr && dropout->whole_samples;
}

// Returns the depth of every layer: the number of layers on the longest path from the input to it.
// Layers of stochastic depth do not count.
std::vector<int> depths_of(const Network& network) {
  std::vector<int> depths;
  for (const Layer& layer : network.layers()) {
    int depth = 0;
    for (const LayerId input : layer.inputs)
      depth = std::max(depth, depths[static_cast<std::size_t>(input)] + (is_drop_path(layer) ? 0 : 1));
    depths.push_back(depth);
  }
  return depths;
}

// Returns which of the layer's two inputs is the residual branch (0 or 1), or nothing if the layer
// is no residual sum.
std::optional<std::size_t> branch_of(const Network& network, const Layer& layer,
                                     const std::vector<int>& depths) {
  if (!std::holds_alternative<Add>(layer.op) || layer.inputs.size() != 2) return std::nullopt;
  if (network.shape(layer.inputs[0]) != network.shape(layer.inputs[1])) return std::nullopt;
  const int first = depths[static_cast<std::size_t>(layer.inputs[0])];
  const int second = depths[static_cast<std::size_t>(layer.inputs[1])];
  if (first == second) return std::nullopt;
  return first > second ? 0 : 1;
}

}  // namespace

Network with_drop_path(const Network& network, float rate) {
  const std::vector<int> depths = depths_of(network);
  const auto sums = std::ranges::count_if(
      network.layers(), [&](const Layer& layer) { return branch_of(network, layer, depths).has_value(); });
  if (sums == 0 && rate > 0)
    throw UsageError(
        fmt::format("--drop-path: found {}, but {} has no residual sum, expected 0 or no --drop-path", rate,
                    network.name()));
  Network result(network.name(), network.shape(network.input()));
  std::vector<LayerId> new_id{0};
  int done = 0;
  for (LayerId id = 1; id < std::ssize(network.layers()); ++id) {
    Layer layer = layer_at(network, id);
    const auto branch = branch_of(network, layer, depths);
    if (is_drop_path(layer)) {
      new_id.push_back(new_id[static_cast<std::size_t>(layer.inputs[0])]);
      continue;
    }
    for (LayerId& input : layer.inputs) input = new_id[static_cast<std::size_t>(input)];
    if (branch) {
      const float here = sums == 1 ? rate : rate * static_cast<float>(done) / static_cast<float>(sums - 1);
      ++done;
      if (here > 0)
        layer.inputs[*branch] =
            result.add(layer.name + ".drop_path", Dropout{here, true}, layer.inputs[*branch]);
    }
    new_id.push_back(result.append(std::move(layer)));
  }
  std::vector<LayerId> outputs = network.outputs();
  for (LayerId& output : outputs) output = new_id[static_cast<std::size_t>(output)];
  result.set_outputs(std::move(outputs));
  return result;
}

}  // namespace convoy::app
