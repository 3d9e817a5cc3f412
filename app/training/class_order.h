// The classes of a data set against those that a checkpoint was trained on.
#pragma once

#include <filesystem>
#include <string>

#include "app/training/checkpoint/checkpoint.h"
#include "app/training/dataset.h"

namespace convoy::app {

// Makes the labels of `dataset` those of the checkpoint. If the names are the same in another
// order, they are mapped by name. Returns what to warn of in one line: that they were mapped, or
// that an older checkpoint has no names to compare; else an empty text. Throws std::runtime_error
// that names `file` and the first name that differs.
std::string match_classes(Dataset& dataset, const std::string& file, const CheckpointState& state,
                          const std::filesystem::path& checkpoint);

}  // namespace convoy::app
