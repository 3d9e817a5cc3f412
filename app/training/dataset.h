// The images that a run trains on, however they reach this rank.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <memory_resource>
#include <vector>

#include "app/training/train_options.h"
#include "comm/communicator.h"
#include "data/loader/loader.h"
#include "data/loader/scatter_loader.h"
#include "data/store/store.h"

namespace convoy::app {

class Dataset {
 public:
  // Collective. Opens --data (on rank 0 alone with --feed scatter) or makes the synthetic set.
  // `threads` of this rank load batches.
  Dataset(const TrainOptions& options, const comm::Communicator& ranks, int threads);

  const data::StoreInfo& info() const { return info_; }
  // Evaluation normalises as training did, whatever the file's own mean and deviation.
  void set_normalisation(std::vector<float> mean, std::vector<float> std);
  data::ImageShape input_shape() const { return input_; }  // of what the network sees
  std::int64_t train_size() const { return size_[0]; }     // after --limit-train
  std::int64_t test_size() const { return size_[1]; }
  // Digests of what this rank reads of a split after its limit, empty where another rank reads: of
  // all labels; of 16 stored images spread evenly over the set.
  std::string labels_sha256(data::Split split) const;
  std::string images_sha256(data::Split split) const;
  // Renumbers the labels so that class i is names[i]. The data set's own names are the same in
  // another order.
  void reorder_classes(const std::vector<std::string>& names);
  int classes() const { return static_cast<int>(info_.classes.size()); }

  // Image operations that the transform of a training sample may hold.
  int most_image_ops() const { return train_augmentation_.image_ops.most(); }
  // Calls visit(first, pixels, count) for pieces of all training and then all test images, numbered
  // through. The set holds pixels, no encoded images.
  void visit_images(const std::function<void(std::int64_t, const std::uint8_t*, std::int64_t)>& visit) const;

  struct Delivery {
    data::BatchOutput output = data::BatchOutput::images;
    std::pmr::memory_resource* memory = nullptr;  // of batches; null: the heap
    int held = 0;  // batches that the receiver keeps while it asks for the next
  };
  // Endless batches from `start` on: shuffled and augmented; in stored order.
  std::unique_ptr<data::BatchSource> train(const Delivery& delivery, data::Position start) const;
  std::unique_ptr<data::BatchSource> test(const Delivery& delivery) const;

 private:
  void open();
  std::unique_ptr<data::BatchSource> source(data::Split split, const data::LoaderOptions& loader) const;
  void scatter(const data::ScatterArguments& arguments) const;
  data::LoaderOptions loader_options(const data::Augmentation& augmentation, const Delivery& delivery) const;

  const TrainOptions& options_;
  const comm::Communicator& ranks_;
  const int threads_;
  data::StoreInfo info_;
  data::ImageShape input_;
  data::Augmentation train_augmentation_, test_augmentation_;
  std::array<std::int64_t, 2> size_{};
  std::array<std::shared_ptr<const data::ImageSet>, 2> sets_;  // by Split; empty where another rank reads
};

}  // namespace convoy::app
