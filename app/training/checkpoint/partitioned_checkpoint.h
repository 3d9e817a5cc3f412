// The checkpoint of a partitioned run: the tensors of all parts in the network's order, as if one rank had held them. So any
// run can resume from it, however its step is spread.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "app/execute/session.h"
#include "app/training/checkpoint/checkpoint.h"
#include "comm/collectives.h"
#include "comm/communicator.h"

namespace convoy::app {

class PartitionedCheckpoint {
 public:
  // Collective over the parts of a replica. `whole` is the undivided training step that the session runs a stage of.
  PartitionedCheckpoint(const StepGraph& whole, const kernels::OptimizerProblem& optimizer,
                        const Session& session, const comm::Communicator& parts);

  // Collective over the parts: fills in the tensors at part 0; elsewhere leaves `state` as it is.
  void capture(const Session& session, CheckpointState& state) const;
  // SHA-256 of all parameters at part 0, empty elsewhere. Collective over the parts.
  std::string parameters_sha256(const Session& session) const;
  // Takes this part's tensors. Throws std::runtime_error naming `path` when the checkpoint is of another model.
  void restore(Session& session, const CheckpointState& state, const std::filesystem::path& path,
               const std::string& model, std::int64_t classes, const kernels::Shape& input_shape) const;

 private:
  struct Owned : TensorName {
    int part = 0;
  };
  std::vector<SavedTensor> gather(const Session& session, const std::vector<Owned>& tensors) const;
  void find_owners(const Session& session);

  const comm::Communicator& parts_;
  std::unique_ptr<comm::Collectives> host_;  // among the parts, for values in host memory
  std::vector<Owned> parameters_, statistics_, optimizer_, averages_;
};

}  // namespace convoy::app
