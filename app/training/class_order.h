// Compares the classes of a data set with the classes that a checkpoint was trained on.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/training/checkpoint/checkpoint.h"
#include "app/training/dataset.h"

namespace convoy::app {

// Renumbers the labels of `dataset` so that each class has the number that the class of the same
// name has in the checkpoint. Returns a warning of one line if it renumbers labels, or if the
// checkpoint is too old to hold names; else an empty text. Throws std::runtime_error that names
// `file` and the first class name that differs.
std::string match_classes(Dataset& dataset, const std::string& file, const CheckpointState& state,
                          const std::filesystem::path& checkpoint);

// Returns the names of the checkpoint's classes, by label. If the checkpoint is too old to hold
// names, returns the numbers of the classes.
std::vector<std::string> class_names(const CheckpointState& state);

}  // namespace convoy::app
