// Several threads read, decode and encode images on their way from a source to a store. Images are
// delivered in the order in which they were submitted.
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
  // If set, the worker reads the file from this source; else `content` holds the file.
  const FileSource* source = nullptr;
  Bytes content;
  // The members below are the worker's results.
  Bytes data;  // the bytes to store: a file or pixels
  ImageShape shape;
  ChannelStatistics::Image statistics;
  // `error` says what is wrong with the image, or is "". LeftOut counts a bad image under `kind`.
  std::string error, kind;
};

class ConvertPipeline {
 public:
  using Work = std::function<void(ConvertedImage&)>;  // called on a worker thread; must not throw
  using Deliver = std::function<void(ConvertedImage&)>;
  ConvertPipeline(int threads, Work work, Deliver deliver);
  ~ConvertPipeline();

  // Hands an image to the threads. `bytes` is the memory that the image holds until it is
  // delivered. If there is not enough room, delivers earlier images first.
  void submit(std::unique_ptr<ConvertedImage> image, std::size_t bytes);
  // Delivers all images that are left.
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

// Memory that several threads share. A thread that needs memory makes a Share, whose constructor
// waits until enough bytes are free. A share that is larger than the budget waits for all of it.
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
