// Selects the outputs of a network that a run trains. Also checks whether a model file still holds
// the network that a checkpoint was trained with: a checkpoint stores the SHA-256 of the network's
// structure as the option "model-structure-sha256".
#pragma once

#include <filesystem>
#include <string>

#include "app/model/network.h"
#include "app/training/checkpoint/checkpoint.h"

namespace convoy::app {

// Returns the network with only the outputs that have a loss: as many as there are weights, or the
// first output if there are none. Throws UsageError if the number of weights does not fit.
Network with_outputs(Network network, std::size_t weights);

// Returns the SHA-256 of a model file's structure, or an empty text for a network of the zoo.
std::string structure_sha256(const Network& network);

// Throws std::runtime_error that names the model file if its network has changed since the
// checkpoint at `path` was written. `found` is the structure's SHA-256 now.
void check_structure(const CheckpointState& state, const std::filesystem::path& path,
                     const std::string& found);

}  // namespace convoy::app
