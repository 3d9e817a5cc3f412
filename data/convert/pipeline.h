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
  // Only the pipeline uses these: the image's number, and the bytes that it has reserved.
  std::int64_t number = 0, reserved = 0;
};

class ConvertPipeline {
 public:
  // The most bytes of files that images hold until they are delivered. A larger file comes alone.
  static constexpr std::size_t kFileBytes = 64 << 20;
  // Called on a worker thread; must not throw, and must call reserve() once.
  using Work = std::function<void(ConvertedImage&)>;
  using Deliver = std::function<void(ConvertedImage&)>;
  // `memory` is the number of bytes that images may reserve together.
  ConvertPipeline(int threads, std::int64_t memory, Work work, Deliver deliver);
  ~ConvertPipeline();

  // Delivers images until a file of so many bytes has room, or until none is left.
  void make_room(std::size_t bytes);
  // Hands an image to the threads, whose file has `bytes` bytes. If there is not enough room,
  // delivers earlier images first.
  void submit(std::unique_ptr<ConvertedImage> image, std::size_t bytes);

  // Reserves memory, at most all of it, until the image is delivered. Waits until every earlier
  // image has reserved its memory and enough bytes are free, so no image waits for a later one.
  // Returns false if the conversion ends and the work is not needed.
  bool reserve(ConvertedImage& image, std::int64_t bytes);
  // Gives back what the image has reserved but for `bytes`.
  void keep(ConvertedImage& image, std::int64_t bytes);
  // Delivers all images that are left.
  void finish();

 private:
  struct Slot {
    std::unique_ptr<ConvertedImage> image;
    std::size_t bytes = 0;
    bool done = false;
  };
  void run();
  bool has_room(std::size_t bytes) const { return slots_.empty() || bytes_ + bytes <= kFileBytes; }
  void deliver_first();

  const std::int64_t memory_;
  Work work_;
  Deliver deliver_;
  std::mutex mutex_;
  std::condition_variable submitted_, done_, reserved_;
  std::deque<std::shared_ptr<Slot>> slots_, waiting_;
  std::size_t bytes_ = 0;
  // The bytes that are reserved, and the numbers of the next images to submit and to reserve.
  std::int64_t used_ = 0, next_number_ = 0, next_to_reserve_ = 0;
  bool stopping_ = false;
  std::vector<std::jthread> workers_;
};

}  // namespace convoy::data
