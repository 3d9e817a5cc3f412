#include "data/convert/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <tuple>

#include "data/class_names.h"

namespace convoy::data {
namespace {

constexpr std::int64_t kNoSplit = -1;

std::string_view folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return std::string_view(path).substr(0, slash == std::string::npos ? 0 : slash);
}

std::string_view file_of(const std::string& path) {
  return std::string_view(path).substr(path.rfind('/') + 1);
}

// Hashes by FNV-1a with a final mix. The hash of an image's name decides its split, so most images
// keep their split when other images are added or removed.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdu;
  return hash ^ hash >> 33;
}

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string lower(std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

}  // namespace

std::string extension_of(const std::string& path) {
  const std::string_view file = file_of(path);
  const auto dot = file.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return "";
  std::string extension(file.substr(dot));
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension;
}

bool is_hidden(const std::string& path) {
  const std::string within = "/" + path + "/";
  return within.find("/.") != std::string::npos || within.find("/__MACOSX/") != std::string::npos;
}

bool is_image(const std::string& path) {
  return !is_hidden(path) && (is_read_image(path) || unread_image_kind(path));
}

std::optional<Split> split_of(const std::string& folder) {
  const std::string name = lower(folder);
  if (name == "train" || name == "training") return Split::train;
  if (name == "test" || name == "testing" || name == "val" || name == "valid" || name == "validation")
    return Split::test;
  return std::nullopt;
}

std::optional<Split> TestNames::split_of(const std::string& name) {
  const auto split = data::split_of(name);
  if (split == Split::test) names_.insert(lower(name));
  return split;
}

void TestNames::require_one(const std::string& source) const {
  if (names_.size() > 1)
    throw std::runtime_error(fmt::format(
        "{}: found the splits '{}' and '{}', expected one for the test images (leave the other one out)",
        source, *names_.begin(), *std::next(names_.begin())));
}

void LeftOutCounter::add_file(const std::string& path) {
  const std::string extension = extension_of(path);
  add(is_hidden(path)     ? "hidden files"
      : is_image(path)    ? "images outside class folders"
      : extension.empty() ? "files without an extension"
                          : extension + " files");
}

std::vector<ConvertReport::LeftOut> LeftOutCounter::list() const {
  std::vector<ConvertReport::LeftOut> result;
  for (const auto& [kind, count] : counts_) result.push_back({kind, count});
  return result;
}

bool may_hold_images(const Unreadable& item) {
  return !is_hidden(item.path) && (item.folder || extension_of(item.path).empty() || is_image(item.path));
}

void Conversion::account_for(const Listing& listing) {
  for (const Unreadable& item : listing.unreadable) {
    if (may_hold_images(item))
      refuse(fmt::format("{}: {}: {}", name, item.path, item.reason), kUnreadable);
    else
      leave_out(item);
  }
  left_out.add("devices, pipes and sockets", listing.special);
  left_out.add("names that lead out of the archive", listing.outside);
  left_out.add("files that a later one of the same name replaces", listing.replaced);
}

void Conversion::leave_out(const Unreadable& item) {
  options.warn(fmt::format("left out {}: {}: {}", name, item.path, item.reason));
  left_out.add(kUnreadable);
}

bool Conversion::takes(const std::string& path, const std::string& shown) {
  const auto unread = unread_image_kind(path);
  if (!is_image(path))
    left_out.add_file(path);
  else if (unread)
    refuse(fmt::format("{}: expected JPEG or PNG, found {}", shown, *unread), *unread);
  return is_image(path) && !unread;
}

void Conversion::refuse(const std::string& message, const std::string& kind) {
  if (!options.skip_bad)
    throw std::runtime_error(fmt::format("{} (--skip-bad leaves such files out)", message));
  options.warn("skipped " + message);
  left_out.add(kind);
  ++skipped;
}

void CatalogueBuilder::add(std::string path, const std::string& class_name, std::optional<Split> split) {
  const auto label = classes_.emplace(class_name, static_cast<std::int32_t>(classes_.size())).first->second;
  samples_.push_back({std::move(path), split ? 0 : kNoSplit, label, split.value_or(Split::train)});
  has_test_ = has_test_ || split == Split::test;
}

void CatalogueBuilder::add_to_test_source(std::string path, const std::string& class_name) {
  const auto label = classes_.emplace(class_name, static_cast<std::int32_t>(classes_.size())).first->second;
  test_samples_.push_back({std::move(path), 0, label, Split::test});
  has_test_ = true;
}

std::vector<std::string> CatalogueBuilder::sorted_classes() const {
  std::vector<std::string> names;
  bool numbers = order_ == Order::as_added;
  for (const auto& [name, label] : classes_) {
    names.push_back(name);
    numbers = numbers && whole_number(name);
  }
  if (numbers)
    std::stable_sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
      return *whole_number(a) < *whole_number(b);
    });
  return names;
}

// Moves the fraction `test_share` of each class into the test split. The images with the smallest
// hashes are moved. At least one image of each class stays in the training split.
void CatalogueBuilder::choose_test_images(const std::vector<std::string>& names) {
  std::vector<std::vector<std::pair<std::uint64_t, std::size_t>>> by_class(names.size());
  for (std::size_t i = 0; i < samples_.size(); ++i)
    by_class[static_cast<std::size_t>(samples_[i].label)].emplace_back(
        hash_of(names[static_cast<std::size_t>(samples_[i].label)] + '/' +
                std::string(file_of(samples_[i].path))),
        i);
  for (auto& images : by_class) {
    std::sort(images.begin(), images.end());
    const auto share = static_cast<std::size_t>(
        std::lround(conversion_.options.test_share * static_cast<double>(images.size())));
    for (std::size_t i = 0; i < std::min(share, images.size() - 1); ++i)
      samples_[images[i].second].split = Split::test;
  }
}

void CatalogueBuilder::require_images(const std::vector<std::string>& names) const {
  std::vector<const Sample*> example(names.size());
  std::vector<bool> trained(names.size());
  for (const auto* samples : {&samples_, &test_samples_}) {
    for (const Sample& sample : *samples) {
      if (sample.split == Split::train) trained[static_cast<std::size_t>(sample.label)] = true;
      if (sample.split == Split::test) example[static_cast<std::size_t>(sample.label)] = &sample;
    }
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!trained[i])
      throw std::runtime_error(fmt::format("{}: {}: class {} has no training images", conversion_.name,
                                           example[i]->path, names[i]));
  }
}

void CatalogueBuilder::require_splits() const {
  if (samples_.empty())
    throw std::runtime_error(fmt::format("{}: no training images, expected some", conversion_.name));
  const auto splitless = [](const Sample& sample) { return sample.row == kNoSplit; };
  const auto found = std::find_if(samples_.begin(), samples_.end(), splitless);
  if (found != samples_.end() && !std::all_of(samples_.begin(), samples_.end(), splitless))
    throw std::runtime_error(fmt::format("{}: {}: in no split, expected one as for other images of the set",
                                         conversion_.name, found->path));
  const double share = conversion_.options.test_share;
  if (has_test_ && share > 0)
    throw std::runtime_error(fmt::format(
        "{}: --test-share {}: the set has test images of its own, expected none", conversion_.name, share));
  if (!has_test_ && share == 0)
    throw std::runtime_error(fmt::format(
        "{}: {} images of {} classes without a test split, expected test/CLASS or val/CLASS next to "
        "train/CLASS, --test SOURCE, or --test-share P, which takes a share of every class",
        conversion_.name, samples_.size(), classes_.size()));
}

void CatalogueBuilder::require_unique_paths() const {
  for (const auto* samples : {&samples_, &test_samples_}) {
    std::vector<const std::string*> paths;
    for (const Sample& sample : *samples) paths.push_back(&sample.path);
    std::sort(paths.begin(), paths.end(), [](const auto* a, const auto* b) { return *a < *b; });
    const auto twice =
        std::adjacent_find(paths.begin(), paths.end(), [](const auto* a, const auto* b) { return *a == *b; });
    if (twice == paths.end()) continue;
    throw std::runtime_error(fmt::format("{}: {} occurs twice, expected once", conversion_.name, **twice));
  }
}

Catalogue CatalogueBuilder::finish() {
  require_splits();
  require_unique_paths();
  Catalogue catalogue;
  catalogue.classes = sorted_classes();
  require_class_names(catalogue.classes, conversion_.name);
  std::vector<std::int32_t> label(classes_.size());
  for (std::size_t i = 0; i < catalogue.classes.size(); ++i)
    label[static_cast<std::size_t>(classes_.at(catalogue.classes[i]))] = static_cast<std::int32_t>(i);
  for (auto* samples : {&samples_, &test_samples_})
    for (Sample& sample : *samples) sample.label = label[static_cast<std::size_t>(sample.label)];
  if (!has_test_) choose_test_images(catalogue.classes);
  require_images(catalogue.classes);
  for (auto* samples : {&samples_, &test_samples_}) {
    std::stable_sort(samples->begin(), samples->end(), [&](const Sample& a, const Sample& b) {
      if (order_ == Order::as_added) return a.split < b.split;
      return std::tuple(a.split, a.label, folder_of(a.path), file_of(a.path)) <
             std::tuple(b.split, b.label, folder_of(b.path), file_of(b.path));
    });
    for (Sample& sample : *samples)
      sample.row = sample.split == Split::train ? catalogue.sizes.train++ : catalogue.sizes.test++;
  }
  if (catalogue.sizes.test == 0)
    throw std::runtime_error(fmt::format("{}: --test-share {}: too small for a test image in any class",
                                         conversion_.name, conversion_.options.test_share));
  catalogue.samples = std::move(samples_);
  catalogue.test_samples = std::move(test_samples_);
  return catalogue;
}

}  // namespace convoy::data
