// Reads the test images from a second source, which the options --test and --test-labels name.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <stdexcept>

#include "data/convert/catalogue.h"
#include "data/convert/folder_source.h"
#include "data/convert/imagenet_devkit.h"
#include "data/path_kind.h"

namespace convoy::data {
namespace {

std::string file_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }
std::string stem_of(const std::string& file) { return file.substr(0, file.rfind('.')); }

struct Labels {
  std::vector<std::string> in_order;           // labels in the order of the images' names
  std::map<std::string, std::string> by_name;  // labels by file name without extension
};

// Reads lines of "FILE LABEL", separated by spaces, tabs or commas, or lines of "LABEL" alone.
// Ignores further fields of a line.
Labels labels_in_text(const std::string& name, const std::string& text) {
  Labels labels;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream words(line);
    std::string first, second;
    if (!(words >> first)) continue;
    if (!(words >> second)) {
      labels.in_order.push_back(first);
    } else if (const auto [entry, is_new] = labels.by_name.emplace(stem_of(file_of(first)), second);
               !is_new && entry->second != second) {
      throw std::runtime_error(
          fmt::format("{}: {} has the labels {} and {}, expected one", name, first, entry->second, second));
    }
  }
  return labels;
}

Labels read_labels(const std::string& name) {
  const auto source = open_source(name);
  const Listing listing = source->list();
  if (is_imagenet_devkit(listing)) return {read_imagenet_devkit(*source, listing), {}};
  if (listing.files.size() != 1 || !source->reads_by_name() || is_folder(name))
    throw std::runtime_error(fmt::format(
        "{}: expected ImageNet's development kit, or a text file with lines of FILE LABEL or of LABEL",
        name));
  Bytes bytes;
  try {
    bytes = source->read(listing.files[0]);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("{}: {}", name, error.what()));
  }
  Labels labels = labels_in_text(name, std::string(bytes.begin(), bytes.end()));
  if (labels.in_order.empty() == labels.by_name.empty())
    throw std::runtime_error(fmt::format("{}: expected lines of FILE LABEL or of LABEL alone", name));
  return labels;
}

// Returns the class for a label. The label is either the name of a class or the index of a class in
// the sorted list of names.
std::string class_of(const std::string& label, const std::vector<std::string>& classes) {
  if (std::find(classes.begin(), classes.end(), label) != classes.end()) return label;
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), number);
  const bool whole = error == std::errc() && end == label.data() + label.size();
  return whole && number < classes.size() ? classes[number] : label;
}

void add_labelled(Conversion& conversion, CatalogueBuilder& builder, Listing listing) {
  const std::string& file = conversion.options.test_labels;
  conversion.account_for(listing);
  const Labels labels = read_labels(file);
  const auto classes = builder.sorted_classes();
  std::vector<std::string> images;
  for (std::string& path : listing.files) {
    if (conversion.takes(path, fmt::format("{}: {}", conversion.test->name(), path)))
      images.push_back(std::move(path));
  }
  std::sort(images.begin(), images.end(),
            [](const std::string& a, const std::string& b) { return file_of(a) < file_of(b); });
  if (!labels.in_order.empty() && labels.in_order.size() != images.size())
    throw std::runtime_error(fmt::format("{}: {} labels, expected {}, one for each image in {}", file,
                                         labels.in_order.size(), images.size(), conversion.test->name()));
  const auto twice =
      std::ranges::adjacent_find(images, {}, [](const std::string& path) { return stem_of(file_of(path)); });
  if (labels.in_order.empty() && twice != images.end())
    throw std::runtime_error(fmt::format("{}: {} and {} have the same name, expected different ones for {}",
                                         conversion.test->name(), *twice, *std::next(twice), file));
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto named = labels.by_name.find(stem_of(file_of(images[i])));
    if (labels.in_order.empty() && named == labels.by_name.end()) {
      conversion.refuse(fmt::format("{}: {}: no label in {}", conversion.test->name(), images[i], file),
                        "images without a label");
      continue;
    }
    const std::string& label = labels.in_order.empty() ? named->second : labels.in_order[i];
    builder.add_to_test_source(std::move(images[i]), class_of(label, classes));
  }
}

}  // namespace

void add_test_source(Conversion& conversion, CatalogueBuilder& builder) {
  if (builder.has_test_images())
    throw std::runtime_error(fmt::format("{}: --test {}: the set has test images of its own, expected none",
                                         conversion.name, conversion.options.test));
  Listing listing = conversion.test->list();
  if (!conversion.options.test_labels.empty()) return add_labelled(conversion, builder, std::move(listing));
  const bool flat = std::any_of(listing.files.begin(), listing.files.end(), [](const std::string& path) {
    return is_image(path) && path.find('/') == std::string::npos;
  });
  if (flat)
    throw std::runtime_error(fmt::format(
        "{}: images without class folders, expected CLASS/… or --test-labels FILE", conversion.test->name()));
  add_test_folders(conversion, builder, std::move(listing));
}

}  // namespace convoy::data
