#include "app/training/run_ranks.h"

namespace convoy::app {

RunRanks::RunRanks(const comm::Communicator& world, int parts)
    : world_(world), parts_(parts), world_tensors_(comm::make_mpi_collectives(world)) {
  groups_ = {world_tensors_.get(), world_tensors_.get(), nullptr};
  if (!partitioned()) return;
  const int part = world.rank() % parts;
  replicas_.emplace(world.split(part, replica(), "replicas"));
  replica_parts_.emplace(world.split(replica(), part, "parts"));
  replica_tensors_ = comm::make_mpi_collectives(*replicas_);
  part_tensors_ = comm::make_mpi_collectives(*replica_parts_);
  groups_ = {world_tensors_.get(), replica_tensors_.get(), part_tensors_.get()};
}

}  // namespace convoy::app
