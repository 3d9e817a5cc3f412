#include "app/training/checkpoint/sealed_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
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

void seal(std::span<std::byte> image) {
  if (image.size() < kSealBytes) throw std::invalid_argument("no room for the seal");
  const auto rest = image.subspan(kSealBytes);
  Sha256 hash;
  hash.update(rest.data(), rest.size());
  const auto text = seal_text(rest.size(), hash.hex_digest());
  std::memcpy(image.data(), text.data(), kSealBytes);
}

void write_whole(const std::filesystem::path& path, std::span<const std::byte> image) {
  data::AtomicFile file(path);
  Descriptor descriptor(file.path(), O_WRONLY | O_CREAT | O_TRUNC);
  const auto check = [&](bool good, const char* action) {
    if (!good) fail(path, fmt::format("cannot {}: {}", action, std::strerror(errno)));
  };
  check(descriptor.get() >= 0, "create");
  while (!image.empty()) {
    const auto written = ::write(descriptor.get(), image.data(), image.size());
    if (written < 0 && errno == EINTR) continue;
    check(written >= 0, "write");
    image = image.subspan(static_cast<std::size_t>(written));
  }
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
