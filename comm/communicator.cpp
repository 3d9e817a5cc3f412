#include "comm/communicator.h"

#include <fmt/format.h>

#include <exception>
#include <stdexcept>
#include <utility>

#include "comm/chunks.h"
#include "comm/mpi_check.h"

namespace convoy::comm {
namespace {

// Spreads keys over all 64 bits, so that keys of derived communicators differ: SplitMix64's
// finaliser (Steele, Lea, Flood, OOPSLA 2014).
std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return value ^ (value >> 31);
}

}  // namespace

std::uint64_t derived_key(std::uint64_t key, std::uint64_t index) { return mix(mix(key) + index + 1); }

namespace {

std::vector<int> world_ranks_of(MPI_Comm handle, int size) {
  MPI_Group world = MPI_GROUP_NULL, mine = MPI_GROUP_NULL;
  check_mpi(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
  check_mpi(MPI_Comm_group(handle, &mine), "MPI_Comm_group");
  std::vector<int> ranks(static_cast<std::size_t>(size)), translated(ranks.size());
  for (int rank = 0; rank < size; ++rank) ranks[rank] = rank;
  check_mpi(MPI_Group_translate_ranks(mine, size, ranks.data(), world, translated.data()),
            "MPI_Group_translate_ranks");
  check_mpi(MPI_Group_free(&mine), "MPI_Group_free");
  check_mpi(MPI_Group_free(&world), "MPI_Group_free");
  return translated;
}

}  // namespace

Communicator::Communicator(MPI_Comm handle, std::shared_ptr<CommContext> context, std::string name,
                           std::uint64_t key)
    : handle_(handle), context_(std::move(context)), name_(std::move(name)), key_(key) {
  const std::scoped_lock lock(context_->making);
  host_ = this_host();
  check_mpi(MPI_Comm_set_errhandler(handle_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Comm_rank(handle_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(handle_, &size_), "MPI_Comm_size");
  MPI_Comm local = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(handle_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &local),
            "MPI_Comm_split_type");
  check_mpi(MPI_Comm_rank(local, &local_rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(local, &local_size_), "MPI_Comm_size");
  check_mpi(MPI_Comm_free(&local), "MPI_Comm_free");
  world_ranks_ = world_ranks_of(handle_, size_);
  channel_ = context_->waits.open_channel(key_, world_ranks_);
}

Communicator::Communicator(Communicator&& other) noexcept
    : handle_(std::exchange(other.handle_, MPI_COMM_NULL)),
      context_(std::move(other.context_)),
      name_(std::move(other.name_)),
      host_(std::move(other.host_)),
      key_(other.key_),
      children_(other.children_),
      rank_(other.rank_),
      size_(other.size_),
      local_rank_(other.local_rank_),
      local_size_(other.local_size_),
      channel_(other.channel_),
      world_ranks_(std::move(other.world_ranks_)) {}

Communicator::~Communicator() {
  // MPI_Comm_free is collective. A rank that unwinds from an error must not wait for the others.
  if (handle_ == MPI_COMM_NULL || handle_ == MPI_COMM_WORLD || std::uncaught_exceptions() > 0) return;
  const std::scoped_lock lock(context_->making);
  int finalized = 0;
  if (MPI_Finalized(&finalized) == MPI_SUCCESS && !finalized) MPI_Comm_free(&handle_);
}

std::uint64_t Communicator::child_key(int color) const {
  return derived_key(key_ + ++children_, static_cast<std::uint64_t>(color));
}

Communicator Communicator::split(int color, int order, std::string name) const {
  if (color < 0) throw std::invalid_argument(fmt::format("split {}: colour {}, expected >= 0", name, color));
  const std::scoped_lock lock(context_->making);
  MPI_Comm child = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(handle_, color, order, &child), "MPI_Comm_split " + name);
  return {child, context_, std::move(name), child_key(color)};
}

Communicator Communicator::split_by_host(std::string name) const {
  const std::scoped_lock lock(context_->making);
  MPI_Comm child = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(handle_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &child),
            "MPI_Comm_split_type " + name);
  // The new communicators, one per host, need different keys. So derive the key from the lowest
  // rank of the host, which is rank 0 of the new communicator.
  int lowest = rank_;
  check_mpi(MPI_Bcast(&lowest, 1, MPI_INT, 0, child), "MPI_Bcast " + name);
  return {child, context_, std::move(name), child_key(lowest)};
}

Communicator Communicator::duplicate(std::string name) const {
  const std::scoped_lock lock(context_->making);
  MPI_Comm child = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(handle_, &child), "MPI_Comm_dup " + name);
  return {child, context_, std::move(name), child_key(0)};
}

}  // namespace convoy::comm
