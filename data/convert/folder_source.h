#pragma once

#include <filesystem>
#include <memory>

#include "data/convert/file_source.h"

namespace convoy::data {

std::unique_ptr<FileSource> open_folder(const std::filesystem::path& root);
std::unique_ptr<FileSource> open_file(const std::filesystem::path& file);

// Returns the content of a file, unpacked if it is compressed. Throws std::runtime_error with the
// reason only, without the path.
Bytes read_file(const std::filesystem::path& path);

}  // namespace convoy::data
