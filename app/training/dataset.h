// Provides the training and test images of a run. Every rank reads them from a file, or rank 0
// reads them and sends the other ranks their parts, or they are synthetic.
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

// The images of both splits (training and test) and their description. One of the splits may be
// missing; its set is then null.
struct OpenedData {
  data::StoreInfo info;
  std::array<std::shared_ptr<const data::ImageSet>, 2> sets;  // indexed by data::Split
};

// Returns how test images are prepared for the network: resized, and their centre cut out.
data::Augmentation test_augmentation(const TrainOptions& options);

// Opens the store that --data names, or makes the synthetic set.
OpenedData open_data(const TrainOptions& options);

class Dataset {
 public:
  // Opens the data with `open`. With --feed scatter only rank 0 opens them. `threads` threads of
  // this rank load the batches. Collective.
  Dataset(const TrainOptions& options, const comm::Communicator& ranks, int threads,
          const std::function<OpenedData(const TrainOptions&)>& open = open_data);

  const data::StoreInfo& info() const { return info_; }
  // Sets the mean and deviation that images are normalised with. An evaluation uses those that the
  // network was trained with.
  void set_normalisation(std::vector<float> mean, std::vector<float> std);
  // Returns the shape of the images that the network gets.
  data::ImageShape input_shape() const { return input_; }
  // Returns the number of training images in use: all, or --limit-train if that is fewer.
  std::int64_t train_size() const { return size_[0]; }
  std::int64_t test_size() const { return size_[1]; }
  // labels_sha256() returns the SHA-256 of the labels of a split that are used. images_sha256()
  // returns the SHA-256 of 16 stored images that are spread evenly over the split. Ranks compare
  // these digests to find out whether they read the same data. On a rank that does not read the
  // split, both functions return an empty text.
  std::string labels_sha256(data::Split split) const;
  std::string images_sha256(data::Split split) const;
  // Renumbers the labels so that class i is names[i]. `names` must be the class names of the data
  // set, in any order.
  void reorder_classes(const std::vector<std::string>& names);
  // Gives the data set other classes. Removes the labels of all images, because they are numbers of
  // the old classes.
  void drop_labels(std::vector<std::string> classes);
  int classes() const { return static_cast<int>(info_.classes.size()); }

  // most_image_ops() returns the largest number of image operations (such as a change of
  // brightness) that the augmentation of one training image may have.
  int most_image_ops() const { return most_image_ops(options_); }
  static int most_image_ops(const TrainOptions& options);
  // Throws std::runtime_error if the images are too small for the options' augmentation.
  void check_augmentation(const TrainOptions& options) const;
  // Visits all training images and then all test images in chunks: calls visit(first, pixels,
  // count) for each chunk of `count` images. `first` is the number of the chunk's first image,
  // counted over both splits. The data set must hold pixels, not encoded images.
  void visit_images(const std::function<void(std::int64_t, const std::uint8_t*, std::int64_t)>& visit) const;

  struct Delivery {
    data::BatchOutput output = data::BatchOutput::images;
    // The memory resource that allocates batches; null means the heap.
    std::pmr::memory_resource* memory = nullptr;
    // The number of batches that the caller still uses when it requests the next one.
    int held = 0;
  };
  // train() and test() return endless sources of batches. Training images are shuffled and
  // augmented; the first batch is the one at position `start` of the run. Test images come in
  // stored order.
  std::unique_ptr<data::BatchSource> train(const Delivery& delivery, data::BatchPosition start) const {
    return train(delivery, start, options_, threads_);
  }
  // Returns a source of training images like train() above, but takes seed, augmentation and mixing
  // from `options` and uses `threads` threads.
  std::unique_ptr<data::BatchSource> train(const Delivery& delivery, data::BatchPosition start,
                                           const TrainOptions& options, int threads) const;
  // Returns an endless source of test images. `skip` gets the messages about images that cannot be
  // read (LoaderOptions::skip); it works only with --feed slice.
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
  // Indexed by data::Split; null if another rank reads the split.
  std::array<std::shared_ptr<const data::ImageSet>, 2> sets_;
};

}  // namespace convoy::app
