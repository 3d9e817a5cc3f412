// Reads, decodes and encodes images on several threads between a source and a store. The images are
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
  // `error` says what is wrong with the image, or is "". LeftOutCounter counts a bad image under
  // `kind`.
  std::string error, kind;
  // Used only by the pipeline: the number of the image, and the bytes of memory reserved for it.
  std::int64_t number = 0, reserved = 0;
};

class ConvertPipeline {
 public:
  // The most bytes of files in memory that are not delivered yet. A larger file is admitted alone.
  static constexpr std::size_t kFileBytes = 64 << 20;
  // Converts one image on a worker thread. It must not throw and must call reserve() exactly once.
  using Work = std::function<void(ConvertedImage&)>;
  using Deliver = std::function<void(ConvertedImage&)>;
  // `memory` is the most bytes that all images together may reserve.
  ConvertPipeline(int threads, std::int64_t memory, Work work, Deliver deliver);
  ~ConvertPipeline();

  // Delivers images until there is room for a file of `bytes` bytes, or until no image is left.
  void make_room(std::size_t bytes);
  // Hands an image whose file has `bytes` bytes to the worker threads. If there is not enough room,
  // delivers earlier images first.
  void submit(std::unique_ptr<ConvertedImage> image, std::size_t bytes);

  // Reserves `bytes` bytes of memory, but at most the whole limit, until the image is delivered.
  // Waits until every earlier image has reserved its memory and enough is free, so no image waits
  // for a later one. Returns false if the pipeline is being destroyed and the image is not needed.
  bool reserve(ConvertedImage& image, std::int64_t bytes);
  // Reduces the reservation of an image to `bytes`.
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
  // `used_` counts the reserved bytes. `next_number_` is the number that the next submitted image
  // gets. `next_to_reserve_` is the number of the only image that may reserve memory now.
  std::int64_t used_ = 0, next_number_ = 0, next_to_reserve_ = 0;
  bool stopping_ = false;
  std::vector<std::jthread> workers_;
};

}  // namespace convoy::data
