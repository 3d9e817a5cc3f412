// Makes a network from a model file. Image size, channels and number of classes may differ from
// those in the file.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "app/model/network.h"

namespace convoy::app {

namespace onnx_import {
struct FileGraph;
}

// `convoy export` writes this key to the metadata of a file if it folds batch norms into
// convolutions.
inline constexpr std::string_view kFoldedBatchNorms = "folded_batch_norms";

// Returns whether --model names a file and not a network of the zoo.
bool is_model_file(std::string_view name);

class ModelFile {
 public:
  // Reads an ONNX file. Throws std::runtime_error in one line that names the file and, if something
  // is not supported, the node.
  explicit ModelFile(const std::string& path);
  // Uses a graph that was read from a file.
  explicit ModelFile(onnx_import::FileGraph graph);

  // Return the image shape [C, H, W] and the number of classes for which the file was made.
  Shape image() const;
  int classes() const;
  // Returns the metadata that `convoy export` wrote: the names of the classes, and the mean and
  // deviation of the images. Empty for files of other exporters.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // Throws std::runtime_error if batch norms were folded into convolutions. The message says how to
  // export the network without folding. A folded network can be evaluated, but not trained like the
  // original.
  void require_trainable() const;
  // Returns the network with the file's values, for a batch `input` of shape [N, C, H, W]. If the
  // number of classes differs from the file's, the last layer with weights gets new initial values.
  // If the number of channels differs, the first convolutions sum or repeat their weights
  // (adapt_channels()). Throws std::runtime_error that names the layer if the network cannot take
  // such images.
  Network network(const Shape& input, int classes) const;

 private:
  std::map<std::string, std::string> metadata_;
  bool folded_;
  Network network_;  // the network with the images and classes of the file
};

}  // namespace convoy::app
