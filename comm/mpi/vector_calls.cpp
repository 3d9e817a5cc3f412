// Implements Communicator's gather, scatter and all-gather. Large data are sent in chunks of
// CommContext::chunk_bytes, because MPI counts elements in an int.
#include <fmt/format.h>

#include <cstring>
#include <numeric>

#include "comm/mpi/communicator_call.h"

namespace convoy::comm {
namespace {

constexpr int kGatherTag = 1, kScatterTag = 2;

// The sends and receives of one operation, cut into chunks and completed together.
class Transfers {
 public:
  Transfers(MPI_Comm handle, MPI_Datatype type, std::int64_t chunk_bytes, int tag, std::string_view name)
      : handle_(handle), type_(type), chunk_bytes_(chunk_bytes), tag_(tag), name_(name) {}

  void send(const void* from, std::int64_t count, int peer) {
    for_each_chunk(count, type_, chunk_bytes_, [&](std::int64_t offset, int chunk) {
      check_mpi(MPI_Isend(at(from, offset), chunk, type_, peer, tag_, handle_, &requests_.emplace_back()),
                name_);
    });
  }
  void receive(void* to, std::int64_t count, int peer) {
    for_each_chunk(count, type_, chunk_bytes_, [&](std::int64_t offset, int chunk) {
      check_mpi(MPI_Irecv(at(to, offset), chunk, type_, peer, tag_, handle_, &requests_.emplace_back()),
                name_);
    });
  }
  void finish() {
    check_mpi(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE), name_);
  }

 private:
  MPI_Comm handle_;
  MPI_Datatype type_;
  std::int64_t chunk_bytes_;
  int tag_;
  std::string_view name_;
  std::vector<MPI_Request> requests_;
};

void copy(const void* from, void* to, std::int64_t bytes) {
  if (bytes > 0 && from != to) std::memmove(to, from, static_cast<std::size_t>(bytes));
}

// Calls visit(peer, offset in bytes, count of elements) for each rank's part of the root's buffer.
template <typename Visit>
void for_each_part(std::span<const std::int64_t> counts, MPI_Datatype type, Visit&& visit) {
  std::int64_t offset = 0;
  for (std::size_t peer = 0; peer < counts.size(); offset += counts[peer++] * size_of(type))
    visit(static_cast<int>(peer), offset, counts[peer]);
}

// Returns a description of the error in the root's arguments of a gatherv or scatterv, or an empty
// text.
std::string packing_problem(std::int64_t all_count, std::span<const std::int64_t> counts, int size, int root,
                            std::int64_t own_count) {
  if (std::ssize(counts) != size)
    return fmt::format("{} counts, expected one for each of {} ranks", counts.size(), size);
  for (const std::int64_t count : counts)
    if (count < 0) return fmt::format("count {}, expected >= 0", count);
  const std::int64_t sum = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  if (sum != all_count)
    return fmt::format("the counts add up to {}, the root's buffer holds {}", sum, all_count);
  if (const std::int64_t own = counts[root]; own != own_count)
    return fmt::format("the root's own count is {}, its buffer holds {}", own, own_count);
  return {};
}

}  // namespace

void Communicator::gatherv_raw(const void* mine, std::int64_t count, void* all, std::int64_t all_count,
                               std::span<const std::int64_t> counts, MPI_Datatype type, int root,
                               std::string_view label) const {
  std::string problem;
  if (rank_ == root) problem = packing_problem(all_count, counts, size_, root, count);
  run({CollectiveKind::gather, label, mine, count, type, root, {}, problem, mine, all},
      [&](std::string_view name) {
        Transfers transfers(handle_, type, context_->chunk_bytes, kGatherTag, name);
        if (rank_ != root)
          transfers.send(mine, count, root);
        else
          for_each_part(counts, type, [&](int peer, std::int64_t offset, std::int64_t theirs) {
            if (peer == root)
              copy(mine, at(all, offset), theirs * size_of(type));
            else
              transfers.receive(at(all, offset), theirs, peer);
          });
        transfers.finish();
      });
}

void Communicator::scatterv_raw(const void* all, std::int64_t all_count, std::span<const std::int64_t> counts,
                                void* mine, std::int64_t count, MPI_Datatype type, int root,
                                std::string_view label) const {
  std::string problem;
  if (rank_ == root) problem = packing_problem(all_count, counts, size_, root, count);
  run({CollectiveKind::scatter, label, mine, count, type, root, {}, problem, all, mine},
      [&](std::string_view name) {
        Transfers transfers(handle_, type, context_->chunk_bytes, kScatterTag, name);
        if (rank_ != root)
          transfers.receive(mine, count, root);
        else
          for_each_part(counts, type, [&](int peer, std::int64_t offset, std::int64_t theirs) {
            if (peer == root)
              copy(at(all, offset), mine, theirs * size_of(type));
            else
              transfers.send(at(all, offset), theirs, peer);
          });
        transfers.finish();
      });
}

void Communicator::gather_raw(const void* mine, std::int64_t count, void* all, std::int64_t all_count,
                              MPI_Datatype type, int root, std::string_view label) const {
  // All ranks have the same `count`, so all take the same branch.
  if (count * size_ * size_of(type) > context_->chunk_bytes) {
    const std::vector<std::int64_t> counts(static_cast<std::size_t>(size_), count);
    return gatherv_raw(mine, count, all, all_count, counts, type, root, label);
  }
  std::string problem;
  if (rank_ == root && all_count != count * size_)
    problem = fmt::format("the root's buffer holds {} elements, expected {}", all_count, count * size_);
  run({CollectiveKind::gather, label, mine, count, type, root, {}, problem, mine, all},
      [&](std::string_view name) {
        check_mpi(MPI_Gather(mine, static_cast<int>(count), type, all, static_cast<int>(count), type, root,
                             handle_),
                  name);
      });
}

void Communicator::all_gather_raw(const void* mine, std::int64_t count, void* all, std::int64_t all_count,
                                  MPI_Datatype type, std::string_view label) const {
  std::string problem;
  if (all_count != count * size_)
    problem = fmt::format("the buffer for all holds {} elements, expected {}", all_count, count * size_);
  const std::int64_t bytes = count * size_of(type);
  run({CollectiveKind::all_gather, label, mine, count, type, {}, {}, problem, mine, all},
      [&](std::string_view name) {
        if (bytes * size_ <= context_->chunk_bytes) {
          check_mpi(
              MPI_Allgather(mine, static_cast<int>(count), type, all, static_cast<int>(count), type, handle_),
              name);
          return;
        }
        copy(mine, at(all, rank_ * bytes), bytes);
        for (int source = 0; source < size_; ++source)
          for_each_chunk(count, type, context_->chunk_bytes, [&](std::int64_t offset, int chunk) {
            check_mpi(MPI_Bcast(at(all, source * bytes + offset), chunk, type, source, handle_), name);
          });
      });
}

std::vector<std::string> Communicator::gather(const std::string& text, int root,
                                              std::string_view label) const {
  const auto ranks = static_cast<std::size_t>(rank_ == root ? size_ : 0);
  const std::int64_t length = std::ssize(text);
  std::vector<std::int64_t> lengths(ranks);
  gather(std::span<const std::int64_t>(&length, 1), std::span<std::int64_t>(lengths), root, label);
  std::string all(static_cast<std::size_t>(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0})),
                  '\0');
  gatherv(std::span<const char>(text), std::span<char>(all), lengths, root, label);
  std::vector<std::string> texts;
  std::size_t first = 0;
  for (const std::int64_t bytes : lengths) {
    texts.push_back(all.substr(first, static_cast<std::size_t>(bytes)));
    first += static_cast<std::size_t>(bytes);
  }
  return texts;
}

}  // namespace convoy::comm
