#pragma once

#include <filesystem>
#include <memory>

#include "data/convert/file_source.h"

namespace convoy::data {

std::unique_ptr<FileSource> open_folder(const std::filesystem::path& root);
std::unique_ptr<FileSource> open_file(const std::filesystem::path& file);

}  // namespace convoy::data
