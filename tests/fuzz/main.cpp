// libFuzzer's entry: `fuzz_data TARGET [libFuzzer's flags]`. The seeds are written to CORPUS/TARGET
// before the first run, if the environment has CONVOY_FUZZ_CORPUS; give that folder as the corpus.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/fuzz/targets.h"

namespace {

const convoy::data::fuzz::Target* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  const std::string name = *count > 1 ? (*arguments)[1] : "";
  for (const auto& target : convoy::data::fuzz::targets())
    if (target.name == name) chosen = &target;
  if (chosen == nullptr) {
    std::fprintf(
        stderr,
        "fuzz_data: found '%s', expected a target: archive, webdataset, csv, records, devkit or convert\n",
        name.c_str());
    std::exit(2);
  }
  // libFuzzer takes what is left.
  (*arguments)[1] = (*arguments)[0];
  ++*arguments;
  --*count;
  if (const char* corpus = std::getenv("CONVOY_FUZZ_CORPUS"); corpus != nullptr) {
    const auto folder = std::filesystem::path(corpus) / name;
    std::filesystem::create_directories(folder);
    int number = 0;
    for (const auto& seed : chosen->seeds())
      std::ofstream(folder / ("seed-" + std::to_string(number++)), std::ios::binary)
          .write(reinterpret_cast<const char*>(seed.data()), static_cast<std::streamsize>(seed.size()));
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen->run({data, size});
  return 0;
}
