// A numbered set of labelled images, which is what the loader reads from: a store, a synthetic set,
// or a part of either.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
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

enum class ImageFormat : std::uint8_t { pixels, encoded };  // encoded: a JPEG or PNG file each

class ImageSet {
 public:
  virtual ~ImageSet() = default;
  virtual std::int64_t size() const = 0;
  virtual std::int32_t label(std::int64_t sample) const = 0;
  // The shape of every image. Height and width are 0 in a set of encoded images, whose sizes
  // differ.
  virtual ImageShape shape() const = 0;
  virtual ImageFormat format() const = 0;
  virtual std::int64_t largest_bytes() const = 0;  // of one stored image
  // The length of stored(sample, …). Sets of encoded images override it.
  virtual std::int64_t stored_bytes(std::int64_t) const { return shape().bytes(); }
  // The bytes of one image as stored: pixels [H, W, C], or a JPEG or PNG file. If they are not in
  // memory, they are read into `scratch`, which has room for largest_bytes(). Safe to call from
  // several threads, each with its own scratch. Throws std::runtime_error naming the file when
  // reading fails.
  virtual std::span<const std::uint8_t> stored(std::int64_t sample,
                                               std::span<std::uint8_t> scratch) const = 0;
  // Names the image in messages: "store.h5: /train/encoded: image 7".
  virtual std::string name(std::int64_t sample) const;
};

// The first `count` images of `set` in a fixed class-balanced order: the first image of every
// class, then the second of every class, and so on, in stored order. Chosen images keep their
// stored order. count <= 0 or >= size() gives the set itself.
std::shared_ptr<const ImageSet> limit(std::shared_ptr<const ImageSet> set, std::int64_t count);

// The same images with the label number_of[label] in place of each label.
std::shared_ptr<const ImageSet> renumber(std::shared_ptr<const ImageSet> set,
                                         std::vector<std::int32_t> number_of);

}  // namespace convoy::data
