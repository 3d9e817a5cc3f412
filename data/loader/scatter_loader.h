// A loader for clusters without a shared file system. Rank 0 reads every global batch and scatters
// the stored bytes. Each rank decodes and augments the samples that it receives. next() returns the
// same batches, to the bit, as Loader with the same options.
//
// The loader does not call MPI itself. The caller passes the scatter operation as a function. Only
// next() calls this function, on its own thread and equally often on every rank. So the caller may
// use the communicator between calls of next().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "data/loader/loader.h"

namespace convoy::data {

// The arguments of one scatter of bytes. On rank 0, `send` holds counts[r] bytes for each rank r,
// one rank after the other. On other ranks, `send` and `counts` are empty. The function resizes
// `receive` to the number of bytes for this rank and fills it.
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
  // `set` is the data on rank 0 and null on other ranks. `about` describes the set and must be the
  // same on every rank; StoreInfo::to_bytes() serialises it for a broadcast. options.buffers must
  // be at least 3, because batches are received ahead. If rank 0 cannot read, its next() throws,
  // and the caller must end the other ranks.
  ScatterLoader(std::shared_ptr<const ImageSet> set, const SetDescription& about,
                const LoaderOptions& options, Scatter scatter);
  ~ScatterLoader() override;

  BatchLease next() override;
  std::int64_t steps_per_epoch() const override;
  double wait_ms() const override;  // includes the time in the collective

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace convoy::data
