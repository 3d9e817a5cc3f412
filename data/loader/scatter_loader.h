// The other way to feed ranks, for clusters without a shared file system: rank 0 reads every global
// batch and scatters it; each rank decodes and augments its own part. The bytes travel as stored,
// and what comes out of next() equals what Loader gives with the same options, to the bit.
//
// This layer knows no MPI. The caller passes the collective in; it is called in next() and in the
// constructor's thread only, the same number of times on every rank, so it may use the communicator
// freely in between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "data/loader/loader.h"

namespace convoy::data {

// One scatter of bytes. `send` and `counts` (bytes by rank, which follow one another in `send`) are
// given on rank 0 and empty elsewhere; the collective makes `receive` as long as this rank's count
// and fills it.
struct ScatterArguments {
  const std::byte* send = nullptr;
  std::span<const std::int64_t> counts;
  std::vector<std::byte>* receive = nullptr;
};
using Scatter = std::function<void(const ScatterArguments&)>;

struct SetDescription {
  std::int64_t size = 0;
  ImageFormat format = ImageFormat::pixels;
  ImageShape shape;  // height and width are 0 if images differ in size
};

class ScatterLoader final : public BatchSource {
 public:
  // set: on rank 0 the data, elsewhere null. `about`: the set's description, on every rank the same
  // (rank 0 sends it, see StoreInfo::to_bytes). Needs options.buffers >= 3: one batch is received
  // ahead. A failure to read on rank 0 is thrown by next() there; the caller has to end the other
  // ranks.
  ScatterLoader(std::shared_ptr<const ImageSet> set, const SetDescription& about,
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
