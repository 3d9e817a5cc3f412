// The targets of fuzzing: readers of files that others made. A target must read its input or refuse
// it with std::runtime_error. tests/data/fuzz_test.cpp runs some inputs in every build; main.cpp
// passes inputs to libFuzzer.
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
  bool (*run)(std::span<const std::uint8_t> input);  // returns whether the input is a good file
  std::vector<Bytes> (*seeds)();                     // small inputs, most of them good files
};

// The targets of this program. image: regions of JPEG and PNG files; store: HDF5 files of encoded
// images; archive: listing, links and layouts of tar and zip archives; webdataset: shards and their
// labels; csv; records: IDX and CIFAR files; devkit: MATLAB files; convert: whole conversions of
// archives; safetensors: weights. The program model_fuzz has only onnx: model files.
const std::vector<Target>& targets();

// Returns whether the action succeeds. Only std::runtime_error may refuse a bad file; any other
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

// Each target is in the file of its name.
bool run_image(std::span<const std::uint8_t> input);
std::vector<Bytes> image_seeds();
bool run_store(std::span<const std::uint8_t> input);
std::vector<Bytes> store_seeds();
bool run_safetensors(std::span<const std::uint8_t> input);
std::vector<Bytes> safetensors_seeds();
bool run_onnx(std::span<const std::uint8_t> input);
std::vector<Bytes> onnx_seeds();

}  // namespace convoy::data::fuzz
