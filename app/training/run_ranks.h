// The ranks of a run, as replicas of a step and, with --partition, as the parts of each replica.
#pragma once

#include <memory>
#include <optional>

#include "app/execute/session.h"
#include "comm/communicator.h"

namespace convoy::app {

class RunRanks {
 public:
  // Collective over `world`, which outlives this object and whose size is a multiple of `parts`. A replica's ranks
  // follow each other, so that its transfers stay on one host where they can.
  RunRanks(const comm::Communicator& world, int parts, kernels::Backend backend);

  int parts() const { return parts_; }
  bool partitioned() const { return parts_ > 1; }
  int replica() const { return world_.rank() / parts_; }
  const comm::Communicator& world() const { return world_; }
  // Those with this rank's part, by replica: among them a global batch is divided.
  const comm::Communicator& replicas() const { return replicas_ ? *replicas_ : world_; }
  // Those of this rank's replica, by part. Only where partitioned.
  const comm::Communicator& replica_parts() const { return *replica_parts_; }
  const RankGroups& groups() const { return groups_; }

 private:
  const comm::Communicator& world_;
  const int parts_;
  std::optional<comm::Communicator> replicas_, replica_parts_;
  std::unique_ptr<comm::Collectives> world_tensors_, replica_tensors_, part_tensors_;
  RankGroups groups_;
};

}  // namespace convoy::app
