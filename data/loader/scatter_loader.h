// The other way to feed ranks, for clusters without a shared file system: rank 0 reads every global batch and
// scatters it; each rank augments its own part. The bytes travel as stored (a quarter of the float images), and
// what comes out of next() equals what Loader gives with the same options, to the bit.
//
// This layer knows no MPI. The caller passes the collective in; it is called in next() and in the constructor's
// thread only, the same number of times on every rank, so it may use the communicator freely in between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "data/loader/loader.h"

namespace convoy::data {

// What MPI_Scatterv needs, in units of records of `record_bytes` bytes (a committed contiguous datatype: counts
// in bytes would not fit an int for large batches). On ranks other than 0 `send` is null and `counts` and
// `displacements` are empty.
struct ScatterArguments {
  std::size_t record_bytes = 0;  // the same in every call
  const void* send = nullptr;
  std::span<const int> counts, displacements;  // by rank
  void* receive = nullptr;
  int receive_count = 0;
};
using Scatter = std::function<void(const ScatterArguments&)>;

class ScatterLoader final : public BatchSource {
 public:
  // set: on rank 0 the data, elsewhere null. size and shape: the set's, on every rank the same (rank 0 sends
  // them, see StoreInfo::to_bytes). Needs options.buffers >= 3: one batch is received ahead. A failure to read
  // on rank 0 is thrown by next() there; the caller has to end the other ranks.
  ScatterLoader(std::shared_ptr<const ImageSet> set, std::int64_t size, ImageShape shape,
                const LoaderOptions& options, Scatter scatter);
  ~ScatterLoader() override;

  BatchLease next() override;
  std::int64_t steps_per_epoch() const override;
  double wait_ms() const override;  // the collective included

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace convoy::data
