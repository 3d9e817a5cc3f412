// Feeds ranks on clusters without a shared file system: rank 0 reads every global batch and
// scatters it; each rank decodes and augments its own part. The bytes travel as stored. next()
// returns the same batches as Loader does with the same options, to the bit.
//
// The loader knows no MPI: the caller passes the collective as a function (Scatter). Only next()
// calls this function, on the thread that calls next() and equally often on every rank, so the
// caller may use the communicator between calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "data/loader/loader.h"

namespace convoy::data {

// The arguments of one scatter of bytes. `send` and `counts` are set on rank 0 and empty elsewhere:
// `send` holds counts[r] bytes for each rank r, one after the other. The collective resizes
// `receive` to this rank's count and fills it.
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
  // `set` is the data on rank 0 and null on the other ranks. `about` describes the set and is the
  // same on every rank (rank 0 sends it, see StoreInfo::to_bytes). options.buffers must be at least
  // 3, because one batch is received ahead. If rank 0 cannot read, its next() throws, and the
  // caller must end the other ranks.
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
