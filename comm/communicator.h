// A group of ranks (the members of a communicator) and its collectives. Barriers and collectives on
// data go through Communicator::run, which checks the arguments, registers the operation with the
// watchdog and calls MPI. With one rank they do not call MPI. With more, only one thread at a time
// may be in such a call, else std::logic_error is thrown. Threads that make, split or destroy
// communicators wait for each other.
//
// Every rank makes the same calls in the same order. `label` names the data ("loss", "running
// mean") in messages. Buffers are in host memory and owned by the caller. Counts may exceed an MPI
// int. Wrong arguments throw std::invalid_argument on the rank that sees them, before it sends
// anything; errors of MPI throw MpiError.
#pragma once

#include <mpi.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/context.h"
#include "comm/reduce_op.h"

namespace convoy::comm {

template <typename T>
concept Element = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, std::int32_t> ||
    std::same_as<T, std::int64_t> || std::same_as<T, std::uint64_t> || std::same_as<T, std::uint8_t> ||
    std::same_as<T, std::byte> || std::same_as<T, char>;

template <Element T>
MPI_Datatype mpi_type() {
  if constexpr (std::same_as<T, float>) return MPI_FLOAT;
  if constexpr (std::same_as<T, double>) return MPI_DOUBLE;
  if constexpr (std::same_as<T, std::int32_t>) return MPI_INT32_T;
  if constexpr (std::same_as<T, std::int64_t>) return MPI_INT64_T;
  if constexpr (std::same_as<T, std::uint64_t>) return MPI_UINT64_T;
  if constexpr (std::same_as<T, std::uint8_t>) return MPI_UINT8_T;
  if constexpr (std::same_as<T, std::byte>) return MPI_BYTE;
  if constexpr (std::same_as<T, char>) return MPI_CHAR;
}

class Communicator {
 public:
  // Takes ownership of `handle`. `key` is the same on all members and differs from the keys of all
  // other communicators. Constructor and destructor are collective; while an exception unwinds, the
  // destructor frees nothing.
  Communicator(MPI_Comm handle, std::shared_ptr<CommContext> context, std::string name, std::uint64_t key);
  Communicator(Communicator&& other) noexcept;
  Communicator& operator=(Communicator&&) = delete;
  ~Communicator();

  int rank() const { return rank_; }
  int size() const { return size_; }
  int local_rank() const { return local_rank_; }  // rank among the members on this host
  int local_size() const { return local_size_; }
  const std::string& host_name() const { return host_; }
  const std::string& name() const { return name_; }
  MPI_Comm handle() const { return handle_; }
  // Identifies the communicator in the watchdog's messages.
  std::uint64_t key() const { return key_; }
  int channel() const { return channel_; }  // index of this communicator in context().waits
  CommContext& context() const { return *context_; }
  const std::shared_ptr<CommContext>& shared_context() const { return context_; }
  // Returns the ranks of the members in MPI_COMM_WORLD, in the order of their ranks here.
  const std::vector<int>& world_ranks() const { return world_ranks_; }

  // Collective over all members. The ranks with the same colour (>= 0) form a new communicator, in
  // which they are ordered by `order`, then by rank.
  Communicator split(int color, int order, std::string name) const;
  Communicator split_by_host(std::string name) const;
  Communicator duplicate(std::string name) const;

  void barrier(std::string_view label) const;

  template <Element T>
  void broadcast(std::span<T> data, int root, std::string_view label) const {
    broadcast_raw(data.data(), std::ssize(data), mpi_type<T>(), root, label);
  }
  std::string broadcast(std::string text, int root, std::string_view label) const;

  // Reduces in place on every rank.
  template <Element T>
  void all_reduce(std::span<T> data, ReduceOp op, std::string_view label) const {
    all_reduce_raw(data.data(), std::ssize(data), mpi_type<T>(), op, label);
  }
  template <Element T>
  T all_reduce(T value, ReduceOp op, std::string_view label) const {
    all_reduce(std::span<T>(&value, 1), op, label);
    return value;
  }
  // Reduces in place at the root. The data of other ranks are not changed.
  template <Element T>
  void reduce(std::span<T> data, ReduceOp op, int root, std::string_view label) const {
    reduce_raw(data.data(), std::ssize(data), mpi_type<T>(), op, root, label);
  }
  // Gathers to `all`, which has size() × mine.size() elements at the root and is ignored elsewhere.
  template <Element T>
  void gather(std::span<const T> mine, std::span<T> all, int root, std::string_view label) const {
    gather_raw(mine.data(), std::ssize(mine), all.data(), std::ssize(all), mpi_type<T>(), root, label);
  }
  // Gathers counts[r] elements from each rank r to `all`, in rank order. Only the root uses `all`
  // and `counts`.
  template <Element T>
  void gatherv(std::span<const T> mine, std::span<T> all, std::span<const std::int64_t> counts, int root,
               std::string_view label) const {
    gatherv_raw(mine.data(), std::ssize(mine), all.data(), std::ssize(all), counts, mpi_type<T>(), root,
                label);
  }
  template <Element T>
  void scatterv(std::span<const T> all, std::span<const std::int64_t> counts, std::span<T> mine, int root,
                std::string_view label) const {
    scatterv_raw(all.data(), std::ssize(all), counts, mine.data(), std::ssize(mine), mpi_type<T>(), root,
                 label);
  }
  // Gathers to `all`, which has size() × mine.size() elements on every rank.
  template <Element T>
  void all_gather(std::span<const T> mine, std::span<T> all, std::string_view label) const {
    all_gather_raw(mine.data(), std::ssize(mine), all.data(), std::ssize(all), mpi_type<T>(), label);
  }
  // Returns every rank's text, in rank order, at the root, and an empty vector elsewhere.
  std::vector<std::string> gather(const std::string& text, int root, std::string_view label) const;

  void broadcast_raw(void* data, std::int64_t count, MPI_Datatype type, int root,
                     std::string_view label) const;
  void all_reduce_raw(void* data, std::int64_t count, MPI_Datatype type, ReduceOp op,
                      std::string_view label) const;

 private:
  void reduce_raw(void* data, std::int64_t count, MPI_Datatype type, ReduceOp op, int root,
                  std::string_view label) const;
  void gather_raw(const void* mine, std::int64_t count, void* all, std::int64_t all_count, MPI_Datatype type,
                  int root, std::string_view label) const;
  void gatherv_raw(const void* mine, std::int64_t count, void* all, std::int64_t all_count,
                   std::span<const std::int64_t> counts, MPI_Datatype type, int root,
                   std::string_view label) const;
  void scatterv_raw(const void* all, std::int64_t all_count, std::span<const std::int64_t> counts, void* mine,
                    std::int64_t count, MPI_Datatype type, int root, std::string_view label) const;
  void all_gather_raw(const void* mine, std::int64_t count, void* all, std::int64_t all_count,
                      MPI_Datatype type, std::string_view label) const;

  struct Call;  // the arguments of a collective, for the checks
  template <typename Body>
  void run(const Call& call, Body&& body) const;
  void check(const Call& call) const;
  std::uint64_t child_key(int color) const;

  MPI_Comm handle_ = MPI_COMM_NULL;
  std::shared_ptr<CommContext> context_;
  std::string name_, host_;
  std::uint64_t key_ = 0;
  mutable std::uint64_t children_ = 0;
  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1;
  int channel_ = 0;
  std::vector<int> world_ranks_;
};

// Returns a key for something that is made from the communicator with the key `key`: a communicator
// that is split off, or a channel of messages. Each thing made from the same communicator needs an
// `index` of its own.
std::uint64_t derived_key(std::uint64_t key, std::uint64_t index);

}  // namespace convoy::comm
