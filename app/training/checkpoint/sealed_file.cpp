#include "app/training/checkpoint/sealed_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <future>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "app/training/checkpoint/sha256.h"
#include "data/atomic_file.h"

namespace convoy::app {
namespace {

constexpr const char* kMagic = "CONVOY CHECKPOINT";

std::string seal_text(std::size_t bytes, const std::string& digest) {
  std::string text = fmt::format("{} 1\nbytes {}\nsha256 {}\n", kMagic, bytes, digest);
  text.resize(kSealBytes);
  return text;
}

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& message) {
  throw std::runtime_error(fmt::format("{}: {}", path.string(), message));
}

// The file is written in blocks of this size, so that the disk works while the rest is written.
constexpr std::size_t kBlockBytes = std::size_t{16} << 20;

std::string digest_of(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes.data(), bytes.size());
  return hash.hex_digest();
}

class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags)
      : id_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~Descriptor() {
    if (id_ >= 0) ::close(id_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return id_; }
  bool close() { return ::close(std::exchange(id_, -1)) == 0; }

 private:
  int id_;
};

// Returns the SHA-256 of all bytes after the seal, and how many these are.
std::pair<std::string, std::size_t> digest_of_rest(std::ifstream& stream) {
  std::vector<char> block(std::size_t{1} << 20);
  Sha256 hash;
  std::size_t bytes = 0;
  while (stream.read(block.data(), static_cast<std::streamsize>(block.size())), stream.gcount() > 0) {
    hash.update(block.data(), static_cast<std::size_t>(stream.gcount()));
    bytes += static_cast<std::size_t>(stream.gcount());
  }
  return {hash.hex_digest(), bytes};
}

}  // namespace

void write_sealed(const std::filesystem::path& path, std::span<const std::byte> image) {
  if (image.size() < kSealBytes) throw std::invalid_argument("no room for the seal");
  const auto rest = image.subspan(kSealBytes);
  std::future<std::string> digest = std::async(std::launch::async, digest_of, rest);
  data::AtomicFile file(path);
  Descriptor descriptor(file.path(), O_WRONLY | O_CREAT | O_TRUNC);
  const auto check = [&](bool good, const char* action) {
    if (!good) fail(path, fmt::format("cannot {}: {}", action, std::strerror(errno)));
  };
  check(descriptor.get() >= 0, "create");
  const auto write_at = [&](std::span<const std::byte> bytes, std::size_t offset) {
    while (!bytes.empty()) {
      const auto written = ::pwrite(descriptor.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (written < 0 && errno == EINTR) continue;
      check(written >= 0, "write");
      bytes = bytes.subspan(static_cast<std::size_t>(written));
      offset += static_cast<std::size_t>(written);
    }
  };
  for (std::size_t at = 0; at < rest.size(); at += kBlockBytes) {
    const auto block = rest.subspan(at, std::min(kBlockBytes, rest.size() - at));
    write_at(block, kSealBytes + at);
    // Starts to move the block to the disk. Only commit() makes sure that it gets there, so an
    // error here does not matter.
    ::sync_file_range(descriptor.get(), static_cast<off64_t>(kSealBytes + at),
                      static_cast<off64_t>(block.size()), SYNC_FILE_RANGE_WRITE);
  }
  const std::string text = seal_text(rest.size(), digest.get());
  write_at(std::as_bytes(std::span(text)), 0);
  check(descriptor.close(), "write");
  file.commit();
}

void check_seal(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream || std::filesystem::is_directory(path)) {
    fail(path, fmt::format("cannot be read: {}", std::strerror(stream ? EISDIR : errno)));
  }
  std::string found(kSealBytes, '\0');
  stream.read(found.data(), kSealBytes);
  const auto damaged = [&](const std::string& message) {
    throw DamagedFile(fmt::format("{}: {}", path.string(), message));
  };
  if (stream.bad()) fail(path, fmt::format("cannot be read: {}", std::strerror(errno)));
  if (!found.starts_with(kMagic)) damaged("is not a Convoy checkpoint");
  const auto [digest, bytes] = digest_of_rest(stream);
  if (found == seal_text(bytes, digest)) return;
  const std::size_t label = found.find("\nbytes ");
  const std::string expected =
      label == std::string::npos ? "" : found.substr(label + 7, found.find('\n', label + 1) - label - 7);
  if (!expected.empty() && expected != std::to_string(bytes)) {
    damaged(
        fmt::format("is cut short or damaged: found {} bytes after its seal, expected {}", bytes, expected));
  }
  damaged("is damaged: its content does not have the SHA-256 that it was sealed with");
}

}  // namespace convoy::app
