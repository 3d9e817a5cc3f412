// Fills batches with encoded images that the caller hands over, as many at a time as the caller
// has. The images become the same inputs of the network, to the bit, as with a Loader with the same
// options.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/loader/loader.h"

namespace convoy::data {

class RequestLoader {
 public:
  // Returns the bytes of an image, which is a JPEG or PNG file. It may keep them in `scratch`,
  // which belongs to the calling thread. Throws std::runtime_error if they cannot be read.
  using Read =
      std::function<std::span<const std::uint8_t>(std::int64_t image, std::vector<std::uint8_t>& scratch)>;

  // `channels` is the number of channels of the decoded images, 1 or 3. A batch has
  // options.global_batch entries. The options `order`, `mix`, `start` and `skip` are not used, and
  // there must be one rank.
  RequestLoader(int channels, const LoaderOptions& options);
  ~RequestLoader();

  // Begins to fill the next batch with images 0 to `count` - 1, at most as many as it has entries.
  // Threads of the loader call `read` until next() returns this batch. Throws std::logic_error if
  // all buffers are in use (BatchSource::next).
  void submit(std::int64_t count, Read read);
  // Waits for the oldest batch that was submitted and not returned yet. Entry i of the batch is
  // image i. errors[i] says in one line why image i could not be read or decoded, so that its entry
  // is empty; else it is an empty text.
  BatchLease next(std::vector<std::string>& errors);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace convoy::data
