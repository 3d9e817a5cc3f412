// Tells folders from files. Unlike the functions of std::filesystem, these do not throw for a path
// without permission: they return false. The caller then opens the path and says why that fails.
#pragma once

#include <filesystem>
#include <system_error>

namespace convoy::data {

inline bool is_folder(const std::filesystem::path& path) {
  std::error_code unknown;
  return std::filesystem::is_directory(path, unknown);
}

inline bool is_file(const std::filesystem::path& path) {
  std::error_code unknown;
  return std::filesystem::is_regular_file(path, unknown);
}

}  // namespace convoy::data
