// Converts data sets in the forms that they are published in to a store.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "data/convert/file_source.h"
#include "data/image_set.h"

namespace convoy::data {

// images   [PREFIX/]train/CLASS/*.jpg|jpeg|png and the same under test/ (or val/); the classes are the folder
//          names in sorted order, the images are in the order of their paths
// cifar    CIFAR-10's or CIFAR-100's binary files (fine labels)
// idx      MNIST's train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-…, and sets in the same form
enum class SourceFormat : std::uint8_t { automatic, images, cifar, idx };

struct ConvertOptions {
  SourceFormat format = SourceFormat::automatic;
  bool skip_bad = false;  // leave images out that cannot be decoded, with a warning each, instead of failing
  int size = 0;      // images: shorter side resized to this, centre cut out; 0: all must be equally large
  int channels = 3;  // images: 3 or 1
  int threads = 0;   // that decode; 0: one a processor
  std::function<void(const std::string&)> warn = [](const std::string&) {};
};

struct ConvertReport {
  SourceFormat format = SourceFormat::automatic;
  std::int64_t train = 0, test = 0, skipped = 0;
};

// The source may be a folder, an archive (tar or zip, compressed in any way that libarchive knows) or a file
// of such a set. Throws std::runtime_error naming the source and the file in it; the destination is then as
// it was before.
ConvertReport convert(const std::filesystem::path& source, const std::filesystem::path& destination,
                      const ConvertOptions& options);

const char* name_of(SourceFormat format);

// The converters behind convert(). `name` is the source's, for messages.
struct Conversion {
  const FileSource& files;
  std::string name;
  std::filesystem::path destination;
  const ConvertOptions& options;
};
ConvertReport convert_images(const Conversion& conversion);
ConvertReport convert_cifar(const Conversion& conversion);
ConvertReport convert_idx(const Conversion& conversion);

// Whether a file of that path tells that the source is in the format.
bool is_image_path(const std::string& path);
bool is_cifar_path(const std::string& path);
bool is_idx_path(const std::string& path);

}  // namespace convoy::data
