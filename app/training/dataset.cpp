#include "app/training/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "app/errors.h"
#include "app/execute/run_on_all_ranks.h"
#include "app/training/checkpoint/sha256.h"
#include "data/loader/scatter_loader.h"
#include "data/synthetic/random_images.h"

namespace convoy::app {
namespace {

constexpr std::int64_t kSyntheticTrain = 8192, kSyntheticTest = 1024;
constexpr std::int64_t kSyntheticSize = 32;

std::size_t index(data::Split split) { return static_cast<std::size_t>(split); }

data::ImageOpSettings image_ops(const TrainOptions& options) {
  data::ImageOpSettings settings;
  if (const auto& jitter = options.color_jitter; !jitter.empty())
    settings.jitter = {static_cast<float>(jitter.at(0)), static_cast<float>(jitter.at(1)),
                       static_cast<float>(jitter.at(2)), static_cast<float>(jitter.at(3))};
  settings.auto_augment = options.auto_augment.kind;
  settings.rand_operations = options.auto_augment.rand().operations;
  settings.rand_magnitude = options.auto_augment.rand().magnitude;
  return settings;
}

data::Augmentation train_augmentation(const TrainOptions& options) {
  data::Augmentation augmentation;
  augmentation.height = augmentation.width = static_cast<int>(options.size);
  augmentation.random_crop = options.crop_padding > 0;
  augmentation.padding = static_cast<int>(options.crop_padding);
  augmentation.random_resized_crop = options.random_resized_crop;
  augmentation.flip = options.flip;
  augmentation.cutout = options.cutout > 0;
  augmentation.cutout_size = static_cast<int>(options.cutout);
  augmentation.erasing = static_cast<float>(options.random_erasing);
  augmentation.image_ops = image_ops(options);
  return augmentation;
}

void check_size(const TrainOptions& options, const data::StoreInfo& info) {
  if (info.format == data::ImageFormat::encoded && options.size == 0)
    throw UsageError(
        fmt::format("--size: {} holds encoded images, whose sizes may differ; expected the pixels a side "
                    "that the network sees",
                    options.data));
}

void check_crop(const TrainOptions& options, const data::ImageShape& stored) {
  const std::int64_t room = std::min(stored.height, stored.width) + 2 * options.crop_padding;
  if (options.crop_padding > 0 && stored.height > 0 && options.size > room)
    throw std::runtime_error(
        fmt::format("--size {}, --crop-padding {}: images of {}x{} give crops of at most {} pixels a side",
                    options.size, options.crop_padding, stored.width, stored.height, room));
}

void check_cutout(const TrainOptions& options, const data::ImageShape& stored) {
  const std::int64_t width = options.size > 0 ? options.size : stored.width,
                     height = options.size > 0 ? options.size : stored.height;
  if (options.cutout > std::min(width, height))
    throw std::runtime_error(
        fmt::format("--cutout: found {}, expected at most {}: the network sees images of {}x{}",
                    options.cutout, std::min(width, height), width, height));
}

data::StoreInfo synthetic_info(const TrainOptions& options) {
  const std::int64_t size = options.size > 0 ? options.size : kSyntheticSize;
  data::StoreInfo info;
  info.shape = {size, size, 3};
  info.size = {kSyntheticTrain, kSyntheticTest};
  for (std::int64_t i = 0; i < options.classes; ++i) info.classes.push_back(fmt::format("{}", i));
  info.mean = {0.5f, 0.5f, 0.5f};
  info.std = {0.29f, 0.29f, 0.29f};
  return info;
}

}  // namespace

data::Augmentation test_augmentation(const TrainOptions& options) {
  data::Augmentation augmentation;
  augmentation.height = augmentation.width = static_cast<int>(options.size);
  augmentation.resize_short = static_cast<int>(options.test_resize);
  return augmentation;
}

OpenedData open_data(const TrainOptions& options) {
  OpenedData opened;
  if (data_source(options.data) == DataSource::synthetic) {
    opened.info = synthetic_info(options);
    for (const data::Split split : {data::Split::train, data::Split::test})
      opened.sets[index(split)] = std::make_shared<data::RandomImages>(
          opened.info.shape, static_cast<std::int32_t>(options.classes), opened.info.size[index(split)],
          static_cast<std::uint64_t>(options.seed) + index(split));
    return opened;
  }
  const data::Store store(options.data);
  opened.info = store.info();
  for (const data::Split split : {data::Split::train, data::Split::test})
    opened.sets[index(split)] = store.split(split);
  return opened;
}

Dataset::Dataset(const TrainOptions& options, const comm::Communicator& ranks, int threads,
                 const std::function<OpenedData(const TrainOptions&)>& open)
    : options_(options), ranks_(ranks), threads_(threads), test_augmentation_(test_augmentation(options)) {
  run_on_all_ranks(ranks, [&] {
    if (options.feed == Feed::scatter && ranks.rank() != 0) return;
    OpenedData opened = open(options);
    info_ = std::move(opened.info);
    if (opened.sets[0]) sets_[0] = data::limit(std::move(opened.sets[0]), options.limit_train);
    if (opened.sets[1]) sets_[1] = data::limit(std::move(opened.sets[1]), options.limit_test);
  });
  if (options.feed == Feed::scatter && ranks.size() > 1)
    info_ = data::StoreInfo::from_bytes(
        ranks.broadcast(ranks.rank() == 0 ? info_.to_bytes() : std::string(), 0, "data set"));
  const auto limited = [](std::int64_t size, std::int64_t limit) {
    return limit > 0 ? std::min(size, limit) : size;
  };
  size_ = {limited(info_.size[0], options.limit_train), limited(info_.size[1], options.limit_test)};
  run_on_all_ranks(ranks, [&] {
    check_size(options, info_);
    check_augmentation(options);
    input_ = train_augmentation(options).output_shape(info_.shape);
    test_augmentation_.output_shape(info_.shape);
  });
}

int Dataset::most_image_ops(const TrainOptions& options) { return image_ops(options).most(); }

void Dataset::check_augmentation(const TrainOptions& options) const {
  check_crop(options, info_.shape);
  check_cutout(options, info_.shape);
}

void Dataset::set_normalisation(std::vector<float> mean, std::vector<float> std) {
  info_.mean = std::move(mean);
  info_.std = std::move(std);
}

data::LoaderOptions Dataset::loader_options(const data::Augmentation& augmentation,
                                            const Delivery& delivery) const {
  data::LoaderOptions loader;
  loader.global_batch = options_.global_batch / options_.accumulate;
  loader.rank = ranks_.rank();
  loader.ranks = ranks_.size();
  loader.group = options_.images_together();
  loader.seed = static_cast<std::uint64_t>(options_.seed);
  loader.augmentation = augmentation;
  loader.mean = info_.mean;
  loader.std = info_.std;
  loader.threads = threads_;
  loader.output = delivery.output;
  loader.memory = delivery.memory;
  loader.buffers += delivery.held;
  return loader;
}

std::string Dataset::labels_sha256(data::Split split) const {
  const auto& set = sets_[index(split)];
  if (!set) return {};
  std::vector<std::int32_t> labels(static_cast<std::size_t>(set->size()));
  for (std::int64_t i = 0; i < set->size(); ++i) labels[i] = set->label(i);
  Sha256 hash;
  hash.update(labels.data(), labels.size() * sizeof labels[0]);
  return hash.hex_digest();
}

std::string Dataset::images_sha256(data::Split split) const {
  const auto& set = sets_[index(split)];
  if (!set) return {};
  std::vector<std::uint8_t> scratch(static_cast<std::size_t>(set->largest_bytes()));
  Sha256 hash;
  const std::int64_t images = std::min<std::int64_t>(set->size(), 16);
  for (std::int64_t i = 0; i < images; ++i) {
    const std::span<const std::uint8_t> stored = set->stored(i * set->size() / images, scratch);
    hash.update(stored.data(), stored.size());
  }
  return hash.hex_digest();
}

void Dataset::reorder_classes(const std::vector<std::string>& names) {
  std::vector<std::int32_t> number_of;
  for (const std::string& name : info_.classes)
    number_of.push_back(static_cast<std::int32_t>(std::ranges::find(names, name) - names.begin()));
  for (auto& set : sets_)
    if (set) set = data::renumber(std::move(set), number_of);
  info_.classes = names;
}

void Dataset::drop_labels(std::vector<std::string> classes) {
  for (auto& set : sets_)
    if (set) set = data::renumber(std::move(set), std::vector<std::int32_t>(info_.classes.size(), -1));
  info_.classes = std::move(classes);
}

void Dataset::visit_images(
    const std::function<void(std::int64_t, const std::uint8_t*, std::int64_t)>& visit) const {
  constexpr std::int64_t kPieceBytes = std::int64_t{16} << 20;
  const std::int64_t bytes = info_.shape.bytes(), most = std::max<std::int64_t>(1, kPieceBytes / bytes);
  std::vector<std::uint8_t> piece(most * bytes);
  std::int64_t first = 0;
  for (const auto& set : sets_)
    for (std::int64_t begin = 0; begin < set->size(); begin += most) {
      const std::int64_t count = std::min(most, set->size() - begin);
      for (std::int64_t i = 0; i < count; ++i) {
        const std::span to = std::span(piece).subspan(i * bytes, bytes);
        const auto stored = set->stored(begin + i, to);
        if (stored.data() != to.data()) std::ranges::copy(stored, to.begin());
      }
      visit(first, piece.data(), count);
      first += count;
    }
}

std::unique_ptr<data::BatchSource> Dataset::train(const Delivery& delivery, data::BatchPosition start,
                                                  const TrainOptions& options, int threads) const {
  data::LoaderOptions loader = loader_options(train_augmentation(options), delivery);
  loader.seed = static_cast<std::uint64_t>(options.seed);
  loader.threads = threads;
  loader.start = start;
  loader.mix = {static_cast<float>(options.mixup), static_cast<float>(options.cutmix)};
  loader.parts_of_step = options.accumulate;
  return source(data::Split::train, loader);
}

std::unique_ptr<data::BatchSource> Dataset::test(const Delivery& delivery,
                                                 std::function<void(const std::string&)> skip) const {
  data::LoaderOptions loader = loader_options(test_augmentation_, delivery);
  loader.order = data::Order::sequential;
  loader.skip = std::move(skip);
  return source(data::Split::test, loader);
}

std::unique_ptr<data::BatchSource> Dataset::source(data::Split split,
                                                   const data::LoaderOptions& loader) const {
  if (options_.feed == Feed::slice || ranks_.size() == 1)
    return std::make_unique<data::Loader>(sets_[index(split)], loader);
  return std::make_unique<data::ScatterLoader>(
      sets_[index(split)], data::SetDescription{size_[index(split)], info_.format, info_.shape}, loader,
      [this](const data::ScatterArguments& arguments) { scatter(arguments); });
}

// Sends every rank its images of a batch. Stored images differ in length, so every rank is first
// told how many bytes it gets.
void Dataset::scatter(const data::ScatterArguments& arguments) const {
  const std::vector<std::int64_t> ones(arguments.counts.size(), 1);
  std::int64_t mine = 0;
  ranks_.scatterv(arguments.counts, std::span<const std::int64_t>(ones), std::span(&mine, 1), 0,
                  "bytes of a batch");
  arguments.receive->resize(mine);
  const std::int64_t all = std::reduce(arguments.counts.begin(), arguments.counts.end());
  ranks_.scatterv(std::span(arguments.send, all), arguments.counts, std::span(*arguments.receive), 0,
                  "batch");
}

}  // namespace convoy::app
