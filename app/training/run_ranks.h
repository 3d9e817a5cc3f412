// Groups the ranks of a run into replicas of the step and, with --partition, the stages of each
// replica.
#pragma once

#include <memory>
#include <optional>

#include "app/execute/session.h"
#include "comm/communicator.h"

namespace convoy::app {

class RunRanks {
 public:
  // Collective over `world`, which outlives this object and whose size is a multiple of `stages`.
  // The ranks of a replica are neighbours, so that its transfers stay on one host if they can.
  RunRanks(const comm::Communicator& world, int stages, kernels::Backend backend);

  int stages() const { return stages_; }
  bool partitioned() const { return stages_ > 1; }
  int replica() const { return world_.rank() / stages_; }
  const comm::Communicator& world() const { return world_; }
  // The ranks that run this rank's stage, by replica. They share a global batch.
  const comm::Communicator& replicas() const { return replicas_ ? *replicas_ : world_; }
  // The ranks of this rank's replica, by stage. Only if partitioned().
  const comm::Communicator& replica_stages() const { return *replica_stages_; }
  const RankGroups& groups() const { return groups_; }

 private:
  const comm::Communicator& world_;
  const int stages_;
  std::optional<comm::Communicator> replicas_, replica_stages_;
  std::unique_ptr<comm::Collectives> world_tensors_, replica_tensors_, stage_tensors_;
  RankGroups groups_;
};

}  // namespace convoy::app
