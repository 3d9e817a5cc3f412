// Declares the fuzz targets, which run Convoy's readers of users' files. A target must read its
// input or refuse it with std::runtime_error. tests/data/fuzz_test.cpp runs a few inputs in every
// build; main.cpp runs the inputs that libFuzzer makes.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace convoy::data::fuzz {

using Bytes = std::vector<std::uint8_t>;

struct Target {
  std::string name;
  bool (*run)(std::span<const std::uint8_t> input);  // returns whether the input was accepted
  std::vector<Bytes> (*seeds)();                     // small inputs, most of them valid files
};

// Returns the targets of this program. The program data_fuzz has these:
//   image        regions of JPEG and PNG files
//   store        HDF5 files of encoded images
//   archive      listing, links and layouts of tar and zip archives
//   webdataset   shards and their labels
//   csv          lists of images and labels
//   records      IDX and CIFAR files
//   devkit       the MATLAB files of ImageNet's development kit
//   convert      whole conversions of archives
//   safetensors  weights
// The program model_fuzz has only the target onnx, which reads model files.
const std::vector<Target>& targets();

// Returns whether the action succeeds. It may refuse a bad file with std::runtime_error; any other
// exception ends the program.
template <typename Action>
bool attempt(const Action& action) {
  try {
    action();
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

// Each target is defined in the source file with its name.
bool run_image(std::span<const std::uint8_t> input);
std::vector<Bytes> image_seeds();
bool run_store(std::span<const std::uint8_t> input);
std::vector<Bytes> store_seeds();
bool run_safetensors(std::span<const std::uint8_t> input);
std::vector<Bytes> safetensors_seeds();
bool run_onnx(std::span<const std::uint8_t> input);
std::vector<Bytes> onnx_seeds();

}  // namespace convoy::data::fuzz
