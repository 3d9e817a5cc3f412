// The network of a run: the outputs that it trains, and whether a model file still holds the
// network that a checkpoint was trained with. The option "model-structure-sha256" of a checkpoint
// remembers that.
#pragma once

#include <filesystem>
#include <string>

#include "app/model/network.h"
#include "app/training/checkpoint/checkpoint.h"

namespace convoy::app {

// Keeps the outputs that have a loss: as many as there are weights, or the first one. Throws
// UsageError for another number of weights.
Network with_outputs(Network network, std::size_t weights);

// Returns the SHA-256 of a model file's structure; empty for a network of the zoo.
std::string structure_sha256(const Network& network);

// Throws std::runtime_error that names the model file if its network has changed since the
// checkpoint at `path` was written.
void check_structure(const CheckpointState& state, const std::filesystem::path& path,
                     const std::string& found);

}  // namespace convoy::app
