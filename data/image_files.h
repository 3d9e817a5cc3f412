// Image files and folders of image files as an ImageSet, without a conversion to a store.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "data/convert/convert.h"
#include "data/image_set.h"

namespace convoy::data {

struct ImageFilesOptions {
  int channels = 3;       // channels of the decoded images: 3 or 1
  bool skip_bad = false;  // leave out files that cannot be read as images
  // Receives a message about each file that is left out.
  std::function<void(const std::string&)> warn = [](const std::string&) {};
};

class ImageFiles final : public ImageSet {
 public:
  // A source is an image file or a folder. A folder stands for all JPEG and PNG files in it and in
  // its subfolders, sorted by path. Links are followed; hidden files and files that are no images
  // are left out. Unless options.skip_bad is set, throws std::runtime_error that names the first
  // file or folder that cannot be read or is an image of another format. Throws also if there is no
  // image at all. The images are decoded later; LoaderOptions::skip says how damaged ones are
  // handled.
  ImageFiles(const std::vector<std::string>& sources, const ImageFilesOptions& options);

  // Labels every image with the class that its top folder inside the source is named after. If an
  // image has no such folder, changes nothing and returns false.
  bool label_by_folder(const std::vector<std::string>& classes);

  const std::vector<ConvertReport::LeftOut>& left_out() const { return left_out_; }
  // Returns how many files were left out because they are images that cannot be read.
  std::int64_t skipped() const { return skipped_; }

  std::int64_t size() const override { return std::ssize(paths_); }
  std::int32_t label(std::int64_t sample) const override {
    return labels_.empty() ? -1 : labels_[index(sample)];
  }
  ImageShape shape() const override { return {0, 0, channels_}; }
  ImageFormat format() const override { return ImageFormat::encoded; }
  std::int64_t largest_bytes() const override { return largest_bytes_; }
  std::int64_t stored_bytes(std::int64_t sample) const override;
  std::span<const std::uint8_t> stored(std::int64_t sample, std::span<std::uint8_t> scratch) const override;
  std::string name(std::int64_t sample) const override { return paths_[index(sample)]; }

 private:
  static std::size_t index(std::int64_t sample) { return static_cast<std::size_t>(sample); }
  void add(std::string path, std::string folder);

  int channels_;
  // For each image: its path, and the name of its top folder inside the source ("" if there is
  // none).
  std::vector<std::string> paths_, folders_;
  std::vector<std::int32_t> labels_;  // empty if the images have no labels
  std::int64_t largest_bytes_ = 0, skipped_ = 0;
  std::vector<ConvertReport::LeftOut> left_out_;
};

}  // namespace convoy::data
