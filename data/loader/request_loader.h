// Fills batches with encoded images that the caller passes, for predictions on request. A batch may
// be partly filled. The network's inputs are identical to those of a Loader with the same options.
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
  // A function that returns the bytes of an image, which is a JPEG or PNG file. It may store them
  // in `scratch`, which belongs to the calling thread. It throws std::runtime_error if reading
  // fails.
  using Read =
      std::function<std::span<const std::uint8_t>(std::int64_t image, std::vector<std::uint8_t>& scratch)>;

  // `channels` is the number of channels of the decoded images, 1 or 3. A batch has
  // options.global_batch entries. options.ranks must be 1. The options `order`, `mix`, `start` and
  // `skip` are ignored.
  RequestLoader(int channels, const LoaderOptions& options);
  ~RequestLoader();

  // Begins to fill the next batch with the images 0 to count - 1; `count` is at most the number of
  // entries. Threads of the loader call `read` until next() has returned this batch. Throws
  // std::logic_error if all buffers are in use.
  void submit(std::int64_t count, Read read);
  // Waits for the oldest submitted batch and returns it. Entry i of the batch is image i. If image
  // i could not be read or decoded, its entry is empty and errors[i] is the reason; otherwise
  // errors[i] is an empty text.
  BatchLease next(std::vector<std::string>& errors);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace convoy::data
