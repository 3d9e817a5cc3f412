// Selects the outputs of a network that a run trains, and checks that a model file still holds the
// network that a checkpoint was trained with. For this check a checkpoint stores the SHA-256 of the
// network's structure as the option "model-structure-sha256".
#pragma once

#include <filesystem>
#include <string>

#include "app/model/network.h"
#include "app/training/checkpoint/checkpoint.h"

namespace convoy::app {

// Returns the network with only the outputs that have a loss. `weights` is the number of
// --loss-weights. If it is 0, only the first output has a loss, else all outputs have one. Throws
// UsageError unless `weights` is 0 or the number of outputs.
Network with_outputs(Network network, std::size_t weights);

// Returns the SHA-256 of a model file's structure, or an empty text for a built-in network.
std::string structure_sha256(const Network& network);

// Throws std::runtime_error that names the model file if the network in the file has changed since
// the checkpoint at `path` was written. `found` is the SHA-256 of the structure in the file.
void check_structure(const CheckpointState& state, const std::filesystem::path& path,
                     const std::string& found);

}  // namespace convoy::app
