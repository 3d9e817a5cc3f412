// Images on their way from a source to a store: read, decoded and encoded by several threads,
// handed on in the order in which they were submitted.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "data/convert/catalogue.h"

namespace convoy::data {

struct ConvertedImage {
  Sample sample;
  const FileSource* source = nullptr;  // read by the worker if set; else `content` holds the file
  Bytes content;
  // The worker's results.
  Bytes data;  // as stored: a file or pixels
  ImageShape shape;
  ChannelStatistics::Image statistics;
  std::string error, kind;  // "" if it is good; the kind is for the closing line
};

class ConvertPipeline {
 public:
  using Work = std::function<void(ConvertedImage&)>;  // on a worker; must not throw
  using Deliver = std::function<void(ConvertedImage&)>;
  ConvertPipeline(int threads, Work work, Deliver deliver);
  ~ConvertPipeline();

  // `bytes`: the memory that the image holds until it is delivered. Delivers earlier images until
  // there is room.
  void submit(std::unique_ptr<ConvertedImage> image, std::size_t bytes);
  // Delivers all that are left.
  void finish();

 private:
  struct Slot {
    std::unique_ptr<ConvertedImage> image;
    std::size_t bytes = 0;
    bool done = false;
  };
  void run();
  void deliver_first();

  Work work_;
  Deliver deliver_;
  std::mutex mutex_;
  std::condition_variable submitted_, done_;
  std::deque<std::shared_ptr<Slot>> slots_, waiting_;
  std::size_t bytes_ = 0;
  bool stopping_ = false;
  std::vector<std::jthread> workers_;
};

// Memory that several threads share: acquire() waits until others have given enough back.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::int64_t bytes) : bytes_(bytes) {}
  class Share {
   public:
    Share(MemoryBudget& budget, std::int64_t bytes);
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

   private:
    MemoryBudget& budget_;
    std::int64_t bytes_;
  };
  std::int64_t bytes() const { return bytes_; }

 private:
  const std::int64_t bytes_;
  std::int64_t used_ = 0;
  std::mutex mutex_;
  std::condition_variable released_;
};

}  // namespace convoy::data
