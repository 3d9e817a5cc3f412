#include "data/image_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace convoy::data {
namespace {

class Subset final : public ImageSet {
 public:
  Subset(std::shared_ptr<const ImageSet> set, std::vector<std::int64_t> chosen)
      : set_(std::move(set)), chosen_(std::move(chosen)) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(chosen_.size()); }
  std::int32_t label(std::int64_t sample) const override { return set_->label(original(sample)); }
  ImageShape shape() const override { return set_->shape(); }
  ImageFormat format() const override { return set_->format(); }
  std::int64_t largest_bytes() const override { return set_->largest_bytes(); }
  std::int64_t stored_bytes(std::int64_t sample) const override {
    return set_->stored_bytes(original(sample));
  }
  std::span<const std::uint8_t> stored(std::int64_t sample, std::span<std::uint8_t> scratch) const override {
    return set_->stored(original(sample), scratch);
  }
  std::string name(std::int64_t sample) const override { return set_->name(original(sample)); }

 private:
  std::int64_t original(std::int64_t sample) const { return chosen_[static_cast<std::size_t>(sample)]; }

  std::shared_ptr<const ImageSet> set_;
  std::vector<std::int64_t> chosen_;
};

class Renumbered final : public ImageSet {
 public:
  Renumbered(std::shared_ptr<const ImageSet> set, std::vector<std::int32_t> number_of)
      : set_(std::move(set)), number_of_(std::move(number_of)) {}
  std::int64_t size() const override { return set_->size(); }
  ImageShape shape() const override { return set_->shape(); }
  std::int32_t label(std::int64_t sample) const override {
    return number_of_[static_cast<std::size_t>(set_->label(sample))];
  }
  ImageFormat format() const override { return set_->format(); }
  std::int64_t largest_bytes() const override { return set_->largest_bytes(); }
  std::int64_t stored_bytes(std::int64_t sample) const override { return set_->stored_bytes(sample); }
  std::span<const std::uint8_t> stored(std::int64_t sample, std::span<std::uint8_t> scratch) const override {
    return set_->stored(sample, scratch);
  }
  std::string name(std::int64_t sample) const override { return set_->name(sample); }

 private:
  std::shared_ptr<const ImageSet> set_;
  std::vector<std::int32_t> number_of_;
};

}  // namespace

const char* name_of(Split split) { return split == Split::train ? "train" : "test"; }

std::string ImageShape::to_string() const { return fmt::format("{}x{}x{}", height, width, channels); }

std::string ImageSet::name(std::int64_t sample) const { return fmt::format("image {}", sample); }

std::shared_ptr<const ImageSet> limit(std::shared_ptr<const ImageSet> set, std::int64_t count) {
  const std::int64_t size = set->size();
  if (count <= 0 || count >= size) return set;
  std::map<std::int32_t, std::int64_t> seen;
  // For each sample: the number of earlier samples of its class, and its index. After a sort by the
  // first number, the first sample of every class comes first, then the second of every class, ….
  std::vector<std::pair<std::int64_t, std::int64_t>> ranked;
  ranked.reserve(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) ranked.emplace_back(seen[set->label(i)]++, i);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = 0; i < count; ++i) chosen.push_back(ranked[static_cast<std::size_t>(i)].second);
  std::sort(chosen.begin(), chosen.end());
  return std::make_shared<Subset>(std::move(set), std::move(chosen));
}

std::shared_ptr<const ImageSet> renumber(std::shared_ptr<const ImageSet> set,
                                         std::vector<std::int32_t> number_of) {
  return std::make_shared<Renumbered>(std::move(set), std::move(number_of));
}

}  // namespace convoy::data
