// The entry points that libFuzzer calls. `data_fuzz TARGET FOLDER [libFuzzer's flags]` writes the
// seeds to the folder, where libFuzzer then also keeps the inputs that reach new code. `data_fuzz
// TARGET FILE` runs one input.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/fuzz/targets.h"

namespace {

using convoy::data::fuzz::Target;

const Target* chosen = nullptr;

const Target* find_target(const std::string& name) {
  std::string names;
  for (const Target& target : convoy::data::fuzz::targets()) {
    if (target.name == name) return &target;
    names += (names.empty() ? "" : ", ") + target.name;
  }
  std::fprintf(stderr, "data_fuzz: found '%s', expected one of %s\n", name.c_str(), names.c_str());
  std::exit(2);
}

void write_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const auto& seed : chosen->seeds())
    std::ofstream(folder / ("seed-" + std::to_string(number++)), std::ios::binary)
        .write(reinterpret_cast<const char*>(seed.data()), static_cast<std::streamsize>(seed.size()));
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  chosen = find_target(*count > 1 ? (*arguments)[1] : "");
  if (*count < 3) {
    std::fprintf(stderr, "data_fuzz: found no folder or file, expected one after the target\n");
    std::exit(2);
  }
  if (!std::filesystem::is_regular_file((*arguments)[2])) write_seeds((*arguments)[2]);
  // Remove the target's name, because libFuzzer expects the folder or file first.
  (*arguments)[1] = (*arguments)[0];
  ++*arguments;
  --*count;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen->run({data, size});
  return 0;
}
