#include "app/training/run_network.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "app/errors.h"
#include "app/training/checkpoint/sha256.h"

namespace convoy::app {

Network with_outputs(Network network, std::size_t weights) {
  const std::vector<LayerId> outputs = network.outputs();
  if (weights > 0 && weights != outputs.size())
    throw UsageError(
        fmt::format("--loss-weights: found {} weights, expected one for each of the {} outputs of {}",
                    weights, outputs.size(), network.name()));
  if (weights > 0 || outputs.size() == 1) return network;
  network.set_outputs({outputs[0]});
  return without_unused(network);
}

std::string structure_sha256(const Network& network) {
  const std::string& text = network.file_structure();
  if (text.empty()) return {};
  Sha256 hash;
  hash.update(text.data(), text.size());
  return hash.hex_digest();
}

void check_structure(const CheckpointState& state, const std::filesystem::path& path,
                     const std::string& found) {
  const std::string expected = nlohmann::json::parse(state.options_json).value("model-structure-sha256", "");
  if (found != expected)
    throw std::runtime_error(fmt::format(
        "{}: not the network that {} was trained with; its structure has the SHA-256 {}, expected {}",
        state.model, path.string(), found, expected));
}

}  // namespace convoy::app
