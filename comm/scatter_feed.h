// Feeds all ranks from rank 0, for clusters without a shared file system: each batch is cut into the ranks'
// parts by a non-blocking MPI_Iscatterv, so that the next batch travels while the ranks compute on this one.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"

namespace convoy::comm {

class ScatterFeed {
 public:
  // Batches of samples of `sample_bytes` bytes each; `label` names them in messages ("images"). Collective:
  // duplicates the communicator, because a scatter under way must not stand in the order of its collectives.
  ScatterFeed(const Communicator& communicator, std::int64_t sample_bytes, std::string_view label,
              int root = 0);
  ~ScatterFeed();
  ScatterFeed(const ScatterFeed&) = delete;
  ScatterFeed& operator=(const ScatterFeed&) = delete;

  // Begins to send counts[r] samples to rank r, which follow those of rank r - 1 in `batch`. `batch` and
  // `counts` matter at the root only; every rank's `mine` has room for its own samples, none being a part
  // like any other. Buffers must live, untouched, until wait. One scatter at a time; allocates nothing.
  void start(std::span<const std::byte> batch, std::span<const std::int64_t> counts,
             std::span<std::byte> mine);
  // Cheap; true when nothing is under way. To be called between operations.
  bool progress();
  // Returns the milliseconds for which the caller was held up.
  double wait();

 private:
  void set_counts(std::span<const std::byte> batch, std::span<const std::int64_t> counts,
                  std::span<std::byte> mine);

  Communicator communicator_;
  OperationName name_;
  int root_;
  std::int64_t sample_bytes_;
  MPI_Datatype sample_ = MPI_DATATYPE_NULL;  // counting in samples keeps large batches within MPI's int
  std::vector<int> counts_, displacements_;  // in samples
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::uint64_t sequence_ = 0;
};

}  // namespace convoy::comm
