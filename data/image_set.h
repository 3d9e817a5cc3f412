// A numbered set of labelled images. It may be a store, a synthetic set, or a selection from one of
// them. The loader reads its images from such a set.
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

// `encoded` means that each image is a JPEG or PNG file.
enum class ImageFormat : std::uint8_t { pixels, encoded };

class ImageSet {
 public:
  virtual ~ImageSet() = default;
  virtual std::int64_t size() const = 0;
  virtual std::int32_t label(std::int64_t sample) const = 0;
  // Returns the shape of every image. Height and width are 0 in a set of encoded images, whose
  // sizes differ.
  virtual ImageShape shape() const = 0;
  virtual ImageFormat format() const = 0;
  virtual std::int64_t largest_bytes() const = 0;  // bytes of the largest stored image
  // Returns the number of bytes that stored(sample, …) returns. Sets of encoded images override
  // this.
  virtual std::int64_t stored_bytes(std::int64_t) const { return shape().bytes(); }
  // Returns the bytes of one image as stored: pixels [H, W, C], or a JPEG or PNG file. If the bytes
  // are not in memory, reads them into `scratch`, which must have room for largest_bytes(). Several
  // threads may call this at once, each with its own scratch. Throws std::runtime_error that names
  // the file if reading fails.
  virtual std::span<const std::uint8_t> stored(std::int64_t sample,
                                               std::span<std::uint8_t> scratch) const = 0;
  // Returns the name of an image for messages: "store.h5: /train/encoded: image 7".
  virtual std::string name(std::int64_t sample) const;
};

// Returns the first `count` images of `set` in a class-balanced order: the first image of every
// class, then the second of every class, and so on. The chosen images keep their order in `set`. If
// count <= 0 or count >= set->size(), returns `set` itself.
std::shared_ptr<const ImageSet> limit(std::shared_ptr<const ImageSet> set, std::int64_t count);

// Returns the set with other labels: each label becomes number_of[label].
std::shared_ptr<const ImageSet> renumber(std::shared_ptr<const ImageSet> set,
                                         std::vector<std::int32_t> number_of);

}  // namespace convoy::data
