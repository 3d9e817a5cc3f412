// Saves and restores the tensors of a session. A partitioned run saves those of all stages in the
// network's order, as if one rank held them, so any run can resume from its checkpoint.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "app/execute/session.h"
#include "app/training/checkpoint/checkpoint.h"
#include "comm/collectives.h"
#include "comm/communicator.h"

namespace convoy::app {

class SessionState {
 public:
  // `session` holds all tensors of its network, here those of one member, and outlives this object.
  explicit SessionState(Session& session, int member = 0);
  // `session` runs a stage of the training step `whole`. `stages`, the ranks of one replica,
  // outlive this object. Collective over `stages`.
  SessionState(Session& session, const StepGraph& whole, const kernels::OptimizerProblem& optimizer,
               const comm::Communicator& stages);

  // Fills in the tensors of `state` on the first stage and changes nothing on the others.
  // Collective over the stages.
  void capture(CheckpointState& state) const;
  // Returns the SHA-256 of all parameters on the first stage, an empty text on the others.
  // Collective over the stages.
  std::string parameters_sha256() const;
  // Takes this rank's tensors from `state`. `model`, `classes` and `input_shape` describe the
  // session. Throws std::runtime_error naming `path` if the checkpoint is of another model.
  void restore(const CheckpointState& state, const std::filesystem::path& path, const std::string& model,
               std::int64_t classes, const kernels::Shape& input_shape);

 private:
  struct OwnedTensor : TensorName {
    int stage = 0;  // known on the first stage
  };
  bool on_first_stage() const { return stages_ == nullptr || stages_->rank() == 0; }
  std::vector<SavedTensor> gather(const std::vector<OwnedTensor>& tensors) const;
  void find_owners();

  Session& session_;
  const int member_ = 0;
  const comm::Communicator* stages_ = nullptr;  // null if the session holds everything
  std::unique_ptr<comm::Collectives> host_;     // between the stages, for values in host memory
  std::vector<OwnedTensor> parameters_, statistics_, optimizer_, averages_;
};

// Replaces parameters and statistics by their moving averages. Throws std::runtime_error naming
// `path` if the run kept none.
void use_averages(CheckpointState& state, const std::filesystem::path& path);

}  // namespace convoy::app
