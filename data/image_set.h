// What the loader reads from: a numbered set of equally large 8-bit images with labels. Stores, synthetic
// sets and the decorators that cut a set down all look like this.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace convoy::data {

enum class Split : std::uint8_t { train, test };
const char* name_of(Split split);

struct ImageShape {
  std::int64_t height = 0, width = 0, channels = 0;
  std::int64_t bytes() const { return height * width * channels; }
  std::string to_string() const;  // "32x32x3"
  bool operator==(const ImageShape&) const = default;
};

class ImageSet {
 public:
  virtual ~ImageSet() = default;
  virtual std::int64_t size() const = 0;
  virtual ImageShape shape() const = 0;
  virtual std::int32_t label(std::int64_t sample) const = 0;
  // The pixels of one image, [H, W, C]. Where they are not in memory they are read into `scratch`, which has
  // room for shape().bytes(). Safe to call from several threads, each with its own scratch. Throws
  // std::runtime_error naming the file when reading fails.
  virtual const std::uint8_t* image(std::int64_t sample, std::uint8_t* scratch) const = 0;
};

// The first `count` images of `set` in a fixed class-balanced order: the first image of every class, then the
// second of every class, and so on, in stored order. Chosen images keep their stored order. count <= 0 or
// >= size() gives the set itself.
std::shared_ptr<const ImageSet> limit(std::shared_ptr<const ImageSet> set, std::int64_t count);

}  // namespace convoy::data
