// Reads a whole text file.
#pragma once

#include <filesystem>
#include <string>

namespace convoy::partition {

// Returns the text of a file or a pipe. If reading fails, throws a std::runtime_error that names
// it.
std::string read_text(const std::filesystem::path& path);

}  // namespace convoy::partition
