// Reads the initial values of a run's parameters and statistics from the file that --init names.
#pragma once

#include <string>
#include <vector>

#include "app/model/weights/weights.h"

namespace convoy::app {

// Gives the network the values of `file`: FILE.safetensors, FILE.onnx or a checkpoint FILE.h5.
// `classes` are the data set's classes, by label. If the file says the names of its classes, as
// checkpoints and files of `convoy export` do, each class gets the row of the last layer (head)
// that belongs to the class of the same name. If the file lacks a class, the whole head is
// initialised at random. Throws UsageError for a file of another kind, and std::runtime_error that
// names the file if it cannot be read or does not fit.
FitRows set_initial_weights(Network& network, const std::string& file,
                            const std::vector<std::string>& classes);

// Does the same for a network that was made from the model file `file` and has its values already:
// changes the head if the file's classes have other names or another order. Returns no rows if it
// changes nothing.
FitRows match_classes_of_model(Network& network, const std::string& file,
                               const std::vector<std::string>& classes);

// Returns the SHA-256 of the initial values. Ranks compare it to find out whether they read the
// same file.
std::string initial_weights_sha256(const Network& network);

}  // namespace convoy::app
