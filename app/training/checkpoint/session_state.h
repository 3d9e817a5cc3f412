// Saves and restores the tensors of a session. With --partition the ranks of a replica divide a
// step into stages (model_parallel/plan.h), and each rank holds the tensors of its stage. The first
// stage collects the tensors of all stages and saves them in the network's order. So a checkpoint
// does not depend on the partition, and a run with any partition can resume from it.
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
  // Makes the state of one of the trainings that `session` runs together (members). `member` is its
  // index in the session. The session holds all tensors of the network and must outlive this
  // object.
  explicit SessionState(Session& session, int member = 0);
  // Makes the state of a session that runs one stage of the training step `whole`. `stages` are the
  // ranks that run its stages. `session` and `stages` must outlive this object. Collective over
  // `stages`.
  SessionState(Session& session, const StepGraph& whole, const kernels::OptimizerProblem& optimizer,
               const comm::Communicator& stages);

  // Stores the tensors in `state` on the first stage. Changes nothing on the other stages.
  // Collective over the ranks that run the stages.
  void capture(CheckpointState& state) const;
  // Returns the SHA-256 of all parameters on the first stage, and an empty text on the other
  // stages. Collective over the ranks that run the stages.
  std::string parameters_sha256() const;
  // Copies this rank's tensors from `state` to the session. `model`, `classes` and `input_shape`
  // describe the network of the session. Throws std::runtime_error that names `path` if the
  // checkpoint is of another network.
  void restore(const CheckpointState& state, const std::filesystem::path& path, const std::string& model,
               std::int64_t classes, const kernels::Shape& input_shape);

 private:
  struct OwnedTensor : TensorName {
    int stage = 0;  // the rank of `stages_` that holds the tensor; set only on the first stage
  };
  bool on_first_stage() const { return stages_ == nullptr || stages_->rank() == 0; }
  std::vector<SavedTensor> gather(const std::vector<OwnedTensor>& tensors) const;
  void find_owners();

  Session& session_;
  const int member_ = 0;
  // The ranks that run the stages of one replica; null if this session holds all tensors.
  const comm::Communicator* stages_ = nullptr;
  // Sends tensors in host memory from the other stages to the first one.
  std::unique_ptr<comm::Collectives> host_;
  std::vector<OwnedTensor> parameters_, statistics_, optimizer_, averages_;
};

// Replaces parameters and statistics by their moving averages. Throws std::runtime_error that names
// `path` if the checkpoint has no averages.
void use_averages(CheckpointState& state, const std::filesystem::path& path);

}  // namespace convoy::app
