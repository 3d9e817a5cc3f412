#include "data/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace convoy::data {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* action) {
  throw std::runtime_error(fmt::format("{}: cannot {}: {}", path.string(), action, std::strerror(errno)));
}

void sync(const std::filesystem::path& opened, int flags, const std::filesystem::path& named) {
  const int descriptor = ::open(opened.c_str(), flags | O_CLOEXEC);
  if (descriptor < 0) fail(named, "open for syncing");
  const int status = ::fsync(descriptor);
  const int error = errno;
  ::close(descriptor);
  errno = error;
  if (status != 0) fail(named, "sync");
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path destination) : destination_(std::move(destination)) {
  // Before the work on its content, not when it is put into place.
  if (std::filesystem::is_directory(destination_))
    throw std::runtime_error(
        fmt::format("{}: is a folder, expected the name of a file", destination_.string()));
  const bool exists = std::filesystem::exists(destination_);
  in_place_ = exists && !std::filesystem::is_regular_file(destination_);
  if (exists && !in_place_ && std::filesystem::is_symlink(destination_))
    destination_ = std::filesystem::canonical(destination_);
  temporary_ = destination_;
  if (!in_place_) temporary_ += ".partial-" + std::to_string(::getpid());
}

AtomicFile::~AtomicFile() {
  std::error_code ignored;
  if (!committed_ && !in_place_) std::filesystem::remove(temporary_, ignored);
}

void AtomicFile::commit() {
  if (in_place_) return;
  sync(temporary_, O_RDWR, destination_);
  if (::rename(temporary_.c_str(), destination_.c_str()) != 0) fail(destination_, "rename into place");
  committed_ = true;
  const auto folder = destination_.parent_path();
  sync(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY, destination_);
}

void write_file_atomically(const std::filesystem::path& destination, std::string_view content) {
  AtomicFile file(destination);
  std::ofstream stream(file.path(), std::ios::binary);
  stream.write(content.data(), static_cast<std::streamsize>(content.size()));
  stream.close();
  if (!stream) fail(destination, "write");
  file.commit();
}

}  // namespace convoy::data
