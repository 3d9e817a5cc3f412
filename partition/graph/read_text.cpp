#include "partition/graph/read_text.h"

#include <fmt/format.h>

#include <fstream>
#include <stdexcept>

namespace convoy::partition {

// Reads block by block, because the size of a pipe is not known.
std::string read_text(const std::filesystem::path& path) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none))
    throw std::runtime_error(fmt::format("{}: is a folder, expected a file", path.string()));
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(fmt::format("{}: cannot be opened", path.string()));
  constexpr std::size_t kChunk = 1 << 20;
  std::string text;
  if (std::filesystem::is_regular_file(path, none))
    text.reserve(static_cast<std::size_t>(std::filesystem::file_size(path)) + kChunk);
  while (file) {
    const std::size_t begin = text.size();
    text.resize(begin + kChunk);
    file.read(text.data() + begin, kChunk);
    text.resize(begin + static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) throw std::runtime_error(fmt::format("{}: cannot be read", path.string()));
  return text;
}

}  // namespace convoy::partition
