// Compares the classes of a data set with those that a checkpoint was trained on.
#pragma once

#include <filesystem>
#include <string>

#include "app/training/checkpoint/checkpoint.h"
#include "app/training/dataset.h"

namespace convoy::app {

// Renumbers the labels of `dataset` as the checkpoint has them, by the names of the classes.
// Returns a warning of one line if labels were renumbered or if the checkpoint is too old to hold
// names, else an empty text. Throws std::runtime_error that names `file` and the first name that
// differs.
std::string match_classes(Dataset& dataset, const std::string& file, const CheckpointState& state,
                          const std::filesystem::path& checkpoint);

}  // namespace convoy::app
