// The training and test images of a run, read from a file by every rank, scattered by rank 0, or
// synthetic.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <memory_resource>
#include <string>
#include <vector>

#include "app/training/train_options.h"
#include "comm/communicator.h"
#include "data/loader/loader.h"
#include "data/loader/scatter_loader.h"
#include "data/store/store.h"

namespace convoy::app {

// The images of both splits and the facts about them. A split may be missing.
struct OpenedData {
  data::StoreInfo info;
  std::array<std::shared_ptr<const data::ImageSet>, 2> sets;  // by Split
};

// Opens the store that --data names, or makes the synthetic set.
OpenedData open_data(const TrainOptions& options);

class Dataset {
 public:
  // Opens the data, on rank 0 alone with --feed scatter. Batches are loaded by `threads` threads of
  // this rank. Collective.
  Dataset(const TrainOptions& options, const comm::Communicator& ranks, int threads,
          const std::function<OpenedData(const TrainOptions&)>& open = open_data);

  const data::StoreInfo& info() const { return info_; }
  // Replaces the file's mean and deviation by those that the network was trained with.
  void set_normalisation(std::vector<float> mean, std::vector<float> std);
  data::ImageShape input_shape() const { return input_; }  // of what the network sees
  std::int64_t train_size() const { return size_[0]; }     // after --limit-train
  std::int64_t test_size() const { return size_[1]; }
  // SHA-256 of all labels of a split after its limit, and of 16 stored images that are spread
  // evenly over it. Both are empty on a rank that does not read the split.
  std::string labels_sha256(data::Split split) const;
  std::string images_sha256(data::Split split) const;
  // Renumbers the labels so that class i is names[i]. `names` must be the data set's own names in
  // another order.
  void reorder_classes(const std::vector<std::string>& names);
  // Forgets the labels of all images, since they are of other classes than these.
  void drop_labels(std::vector<std::string> classes);
  int classes() const { return static_cast<int>(info_.classes.size()); }

  // The most image operations that the transform of a training sample can hold.
  int most_image_ops() const { return most_image_ops(options_); }
  static int most_image_ops(const TrainOptions& options);
  // Throws std::runtime_error if the images are too small for the options' augmentation.
  void check_augmentation(const TrainOptions& options) const;
  // Calls visit(first, pixels, count) for chunks of all training images, then of all test images;
  // `first` counts through both. The set must hold pixels, not encoded images.
  void visit_images(const std::function<void(std::int64_t, const std::uint8_t*, std::int64_t)>& visit) const;

  struct Delivery {
    data::BatchOutput output = data::BatchOutput::images;
    std::pmr::memory_resource* memory = nullptr;  // of batches; null: the heap
    int held = 0;  // batches that the receiver keeps while it asks for the next
  };
  // Return batches without end: train shuffled and augmented from `start` on, test in stored order.
  std::unique_ptr<data::BatchSource> train(const Delivery& delivery, data::Position start) const {
    return train(delivery, start, options_, threads_);
  }
  // Does so with the seed, augmentation and mixing of other options and another number of threads.
  std::unique_ptr<data::BatchSource> train(const Delivery& delivery, data::Position start,
                                           const TrainOptions& options, int threads) const;
  // `skip` is LoaderOptions::skip. It needs --feed slice.
  std::unique_ptr<data::BatchSource> test(const Delivery& delivery,
                                          std::function<void(const std::string&)> skip = nullptr) const;

 private:
  std::unique_ptr<data::BatchSource> source(data::Split split, const data::LoaderOptions& loader) const;
  void scatter(const data::ScatterArguments& arguments) const;
  data::LoaderOptions loader_options(const data::Augmentation& augmentation, const Delivery& delivery) const;

  const TrainOptions& options_;
  const comm::Communicator& ranks_;
  const int threads_;
  data::StoreInfo info_;
  data::ImageShape input_;
  data::Augmentation test_augmentation_;
  std::array<std::int64_t, 2> size_{};
  std::array<std::shared_ptr<const data::ImageSet>, 2> sets_;  // by Split; empty if another rank reads
};

}  // namespace convoy::app
