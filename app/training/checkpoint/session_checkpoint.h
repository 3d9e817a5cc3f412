// Between a session's tensors and a checkpoint's.
#pragma once

#include <filesystem>

#include "app/execute/session.h"
#include "app/training/checkpoint/checkpoint.h"

namespace convoy::app {

// Everything that the session keeps from step to step; the rest of the state is the caller's to fill in.
void capture(const Session& session, CheckpointState& state);

// Throws std::runtime_error naming `path` when the checkpoint is of another model. `model`, `classes` and `input_shape`
// say what the session runs.
void restore(Session& session, const CheckpointState& state, const std::filesystem::path& path,
             const std::string& model, std::int64_t classes, const kernels::Shape& input_shape);

// Puts the moving averages in the place of the parameters and statistics. Throws std::runtime_error
// naming `path` where the run kept none.
void take_averages(CheckpointState& state, const std::filesystem::path& path);

// SHA-256 of the parameters, as in checkpoints.
std::string parameters_sha256(const Session& session);

}  // namespace convoy::app
