// A network from a model file, for images and classes that may be others than the file's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/model/network.h"

namespace convoy::app {

namespace onnx_import {
struct FileGraph;
}

// Whether a name of --model is that of a file and not of a network of the zoo.
bool is_model_file(std::string_view name);

class ModelFile {
 public:
  // Reads an ONNX file. Throws std::runtime_error, one line that names the file and, for what is
  // not supported, the node.
  explicit ModelFile(const std::string& path);
  // Takes what has been read of a file.
  explicit ModelFile(onnx_import::FileGraph graph);

  // The images [C, H, W] and the number of classes that the file was made for.
  Shape image() const;
  int classes() const;
  // Returns the network with the file's values for a batch `input`, [N, C, H, W]. With another
  // number of classes the last layer with weights is drawn anew. Throws std::runtime_error, which
  // names the layer, if the network cannot take such images.
  Network network(const Shape& input, int classes) const;

 private:
  Network network_;  // as the file has it
};

}  // namespace convoy::app
