// Reads Tiny ImageNet (http://cs231n.stanford.edu/tiny-imagenet-200.zip). wnids.txt lists the
// classes. The training images are train/WNID/images/*.JPEG. The test images are val/images/*.JPEG,
// labelled by val/val_annotations.txt ("FILE WNID x y w h"). The images in test/ have no labels and
// are left out.
#include <fmt/format.h>

#include <sstream>
#include <stdexcept>

#include "data/convert/catalogue.h"

namespace convoy::data {
namespace {

constexpr const char* kAnnotations = "val/val_annotations.txt";

std::optional<std::string> root_of(const Listing& listing) {
  for (const std::string& path : listing.files)
    if (path == kAnnotations || path.ends_with(std::string("/") + kAnnotations))
      return path.substr(0, path.size() - std::string(kAnnotations).size());
  return std::nullopt;
}

std::istringstream text_of(const Conversion& conversion, const std::string& path) {
  try {
    const Bytes bytes = conversion.source->read(path);
    return std::istringstream(std::string(bytes.begin(), bytes.end()));
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("{}: {}: {}", conversion.name, path, error.what()));
  }
}

}  // namespace

bool is_tiny_imagenet(const Listing& listing) { return root_of(listing).has_value(); }

Catalogue tiny_imagenet(Conversion& conversion, Listing listing) {
  const auto root = root_of(listing);
  if (!root)
    throw std::runtime_error(
        fmt::format("{}: no {}, expected Tiny ImageNet's", conversion.name, kAnnotations));
  std::map<std::string, std::string> labels;  // file name -> class
  std::istringstream annotations = text_of(conversion, *root + kAnnotations);
  for (std::string line, file, wnid; std::getline(annotations, line);)
    if (std::istringstream(line) >> file >> wnid) labels[file] = wnid;
  CatalogueBuilder builder(conversion, CatalogueBuilder::Order::sorted);
  const std::string train = *root + "train/", test = *root + "val/images/";
  bool has_wnids = false;
  for (std::string& path : listing.files) {
    has_wnids = has_wnids || path == *root + "wnids.txt";
    const auto images = path.rfind("/images/");
    if (!conversion.takes(path, fmt::format("{}: {}", conversion.name, path))) continue;
    if (path.starts_with(train) && images != std::string::npos && images > train.size()) {
      const std::string wnid = path.substr(train.size(), images - train.size());
      builder.add(std::move(path), wnid, Split::train);
    } else if (path.starts_with(test)) {
      const auto label = labels.find(path.substr(test.size()));
      if (label != labels.end())
        builder.add(std::move(path), label->second, Split::test);
      else
        conversion.refuse(fmt::format("{}: {}: no label in {}", conversion.name, path, kAnnotations),
                          "images without a label");
    } else {
      conversion.left_out.add("images without a label");
    }
  }
  if (has_wnids) {
    std::istringstream wnids = text_of(conversion, *root + "wnids.txt");
    for (std::string wnid; wnids >> wnid;)
      if (!builder.has_class(wnid))
        throw std::runtime_error(fmt::format("{}: no images of {}, expected some of every class in wnids.txt",
                                             conversion.name, wnid));
  }
  return builder.finish();
}

}  // namespace convoy::data
