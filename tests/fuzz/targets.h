// What is fuzzed: each target reads one input as a user's file and must neither crash nor hang.
// Every target has seeds, small valid inputs made by code.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace convoy::data::fuzz {

using Bytes = std::vector<std::uint8_t>;

struct Target {
  std::string name;
  bool (*run)(std::span<const std::uint8_t> input);  // whether the input is a good file
  std::vector<Bytes> (*seeds)();
};

// archive: listing, links and layouts of tar and zip archives; webdataset: shards and their labels;
// csv; records: IDX and CIFAR files; devkit: MATLAB files; convert: whole conversions of archives.
const std::vector<Target>& targets();

}  // namespace convoy::data::fuzz
