#include "app/training/run_ranks.h"

#include "app/execute/run_on_all_ranks.h"
#include "app/training/rank_setup.h"
#include "comm/make_collectives.h"

namespace convoy::app {

RunRanks::RunRanks(const comm::Communicator& world, int stages, kernels::Backend backend)
    : world_(world), stages_(stages) {
  const comm::Sums of_world = partitioned() ? comm::Sums::small : comm::Sums::gradients;
  run_on_all_ranks(world, [&] { world_tensors_ = comm::make_collectives(backend, world, of_world); });
  groups_ = {world_tensors_.get(), world_tensors_.get(), nullptr};
  if (!partitioned()) return;
  const int stage = world.rank() % stages;
  replicas_.emplace(world.split(stage, replica(), "replicas"));
  replica_stages_.emplace(world.split(replica(), stage, "stages"));
  replica_tensors_ = comm::make_collectives(backend, *replicas_);
  stage_tensors_ = comm::make_collectives(backend, *replica_stages_, comm::Sums::small);
  groups_ = {world_tensors_.get(), replica_tensors_.get(), stage_tensors_.get()};
}

}  // namespace convoy::app
