#include "app/training/run_ranks.h"

#include "app/execute/run_on_all_ranks.h"
#include "app/training/rank_setup.h"

namespace convoy::app {

RunRanks::RunRanks(const comm::Communicator& world, int parts, kernels::Backend backend)
    : world_(world), parts_(parts) {
  const comm::Sums of_world = partitioned() ? comm::Sums::small : comm::Sums::gradients;
  run_on_all_ranks(world, [&] { world_tensors_ = make_collectives(backend, world, of_world); });
  groups_ = {world_tensors_.get(), world_tensors_.get(), nullptr};
  if (!partitioned()) return;
  const int part = world.rank() % parts;
  replicas_.emplace(world.split(part, replica(), "replicas"));
  replica_parts_.emplace(world.split(replica(), part, "parts"));
  replica_tensors_ = make_collectives(backend, *replicas_);
  part_tensors_ = make_collectives(backend, *replica_parts_, comm::Sums::small);
  groups_ = {world_tensors_.get(), replica_tensors_.get(), part_tensors_.get()};
}

}  // namespace convoy::app
