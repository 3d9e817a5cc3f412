// The first values of a run's parameters and statistics, from the file that --init names.
#pragma once

#include <string>
#include <vector>

#include "app/model/weights/weights.h"

namespace convoy::app {

// Reads a safetensors file, an ONNX file or a checkpoint, whose names end in .safetensors, .onnx
// and .h5, and gives the network its values. `classes` are the data set's, by label: a checkpoint's
// head goes by the classes' names, and is drawn if these differ. Throws UsageError for a file of
// another kind, and std::runtime_error that names the file if it cannot be read or does not fit.
FitRows set_initial_weights(Network& network, const std::string& file,
                            const std::vector<std::string>& classes);

// Returns the SHA-256 of the first values, so that ranks can tell whether they read the same file.
std::string initial_weights_sha256(const Network& network);

}  // namespace convoy::app
