// Divides the ranks of a run into replicas. Each replica computes whole steps, on its part of the
// batch. With --partition a replica consists of several ranks, each of which runs a stage of the
// step.
#pragma once

#include <memory>
#include <optional>

#include "app/execute/session.h"
#include "comm/communicator.h"

namespace convoy::app {

class RunRanks {
 public:
  // Divides the ranks. The ranks of a replica have consecutive numbers, so that they are on one
  // host if possible and transfers between stages stay on that host. The size of `world` must be a
  // multiple of `stages`, and `world` must outlive this object. Collective over `world`.
  RunRanks(const comm::Communicator& world, int stages, kernels::Backend backend);

  int stages() const { return stages_; }
  bool partitioned() const { return stages_ > 1; }
  int replica() const { return world_.rank() / stages_; }
  const comm::Communicator& world() const { return world_; }
  // Returns the ranks that run the same stage as this rank, one rank per replica. They sum their
  // gradients, because each replica computes a part of the global batch.
  const comm::Communicator& replicas() const { return replicas_ ? *replicas_ : world_; }
  // Returns the ranks of this rank's replica, in the order of their stages. Requires partitioned().
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
