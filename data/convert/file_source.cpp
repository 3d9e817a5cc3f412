#include "data/convert/file_source.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace convoy::data {
namespace {

constexpr std::size_t kReadBlock = 1 << 18;

struct FreeArchive {
  void operator()(archive* reader) const { archive_read_free(reader); }
};
using ArchivePointer = std::unique_ptr<archive, FreeArchive>;

[[noreturn]] void fail(const std::string& name, archive* reader) {
  const char* reason = archive_error_string(reader);
  throw std::runtime_error(
      fmt::format("{}: damaged or cut short: {}", name, reason == nullptr ? "unknown format" : reason));
}

Bytes read_entry(archive* reader, archive_entry* entry, const std::string& name) {
  Bytes content;
  if (archive_entry_size_is_set(entry) != 0) {
    content.reserve(static_cast<std::size_t>(
        std::clamp<std::int64_t>(archive_entry_size(entry), 0, std::int64_t{1} << 26)));
  }
  for (std::size_t size = 0;;) {
    content.resize(size + kReadBlock);
    const la_ssize_t got = archive_read_data(reader, content.data() + size, kReadBlock);
    if (got == ARCHIVE_RETRY) continue;
    if (got < 0) fail(name, reader);
    size += static_cast<std::size_t>(got);
    content.resize(size);
    if (got == 0) return content;
  }
}

archive_entry* next_entry(archive* reader, const std::string& name) {
  archive_entry* entry = nullptr;
  int status = ARCHIVE_RETRY;
  while (status == ARCHIVE_RETRY) status = archive_read_next_header(reader, &entry);
  if (status == ARCHIVE_EOF) return nullptr;
  if (status != ARCHIVE_OK && status != ARCHIVE_WARN) fail(name, reader);
  return entry;
}

bool is_compressed(const Bytes& content) {
  const auto starts_with = [&](std::initializer_list<std::uint8_t> magic) {
    return content.size() >= magic.size() && std::equal(magic.begin(), magic.end(), content.begin());
  };
  return starts_with({0x1F, 0x8B}) || starts_with({0xFD, '7', 'z', 'X', 'Z'}) ||
         starts_with({'B', 'Z', 'h'}) || starts_with({0x28, 0xB5, 0x2F, 0xFD});
}

Bytes unpack(Bytes content, const std::string& name) {
  if (!is_compressed(content)) return content;
  const ArchivePointer reader(archive_read_new());
  archive_read_support_filter_all(reader.get());
  archive_read_support_format_raw(reader.get());
  if (archive_read_open_memory(reader.get(), content.data(), content.size()) != ARCHIVE_OK) {
    fail(name, reader.get());
  }
  archive_entry* entry = next_entry(reader.get(), name);
  if (entry == nullptr) fail(name, reader.get());
  return read_entry(reader.get(), entry, name);
}

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary | std::ios::ate);
  if (!stream) throw std::runtime_error(fmt::format("{}: {}", path.string(), std::strerror(errno)));
  Bytes content(static_cast<std::size_t>(std::max<std::streamoff>(stream.tellg(), 0)));
  stream.seekg(0);
  stream.read(reinterpret_cast<char*>(content.data()), static_cast<std::streamsize>(content.size()));
  if (!stream) throw std::runtime_error(fmt::format("{}: cannot read", path.string()));
  return unpack(std::move(content), path.string());
}

class Folder final : public FileSource {
 public:
  explicit Folder(const std::filesystem::path& root) {
    const auto options = std::filesystem::directory_options::follow_directory_symlink;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root, options)) {
      const std::string path = entry.path().lexically_relative(root).generic_string();
      // A link that leads nowhere is a file that cannot be read, not one that is not there.
      if (entry.is_regular_file() || (entry.is_symlink() && !entry.exists())) paths_.push_back(path);
      if (entry.is_directory()) folders_.push_back(path);
    }
    std::sort(paths_.begin(), paths_.end());
    root_ = root;
  }
  std::vector<std::string> folders() const override { return folders_; }
  void visit(const Visitor& visitor) const override {
    for (const auto& path : paths_) {
      if (!visitor(path, [&] { return read_file(root_ / path); })) return;
    }
  }

 private:
  std::filesystem::path root_;
  std::vector<std::string> paths_, folders_;
};

class SingleFile final : public FileSource {
 public:
  explicit SingleFile(std::filesystem::path path) : path_(std::move(path)) {}
  void visit(const Visitor& visitor) const override {
    visitor(path_.filename().string(), [&] { return read_file(path_); });
  }

 private:
  std::filesystem::path path_;
};

class Archive final : public FileSource {
 public:
  explicit Archive(std::string name) : name_(std::move(name)) {}

  static ArchivePointer open(const std::string& name) {
    ArchivePointer reader(archive_read_new());
    archive_read_support_filter_all(reader.get());
    archive_read_support_format_tar(reader.get());
    archive_read_support_format_zip(reader.get());
    if (archive_read_open_filename(reader.get(), name.c_str(), kReadBlock) != ARCHIVE_OK) {
      fail(name, reader.get());
    }
    return reader;
  }

  // Whether the file is an archive at all; a damaged one is one.
  static bool recognises(const std::string& name) {
    try {
      const ArchivePointer reader = open(name);
      archive_entry* entry = nullptr;
      archive_read_next_header(reader.get(), &entry);
      return archive_format(reader.get()) != 0;
    } catch (const std::runtime_error&) {
      return false;
    }
  }

  void visit(const Visitor& visitor) const override {
    const ArchivePointer reader = open(name_);
    while (archive_entry* entry = next_entry(reader.get(), name_)) {
      if (archive_entry_filetype(entry) != AE_IFREG) continue;
      const char* raw = archive_entry_pathname(entry);
      if (raw == nullptr) raw = archive_entry_pathname_utf8(entry);
      if (raw == nullptr) throw std::runtime_error(name_ + ": holds a file without a readable name");
      std::string path = std::filesystem::path(raw).lexically_normal().generic_string();
      const bool more = visitor(path, [&] {
        const std::string name = fmt::format("{}: {}", name_, path);
        return unpack(read_entry(reader.get(), entry, name), name);
      });
      if (!more) return;
    }
  }

 private:
  std::string name_;
};

// Throws where a file's compression is damaged: what lies in it, an archive perhaps, cannot be told then.
void require_whole_compression(const std::string& name) {
  const ArchivePointer reader(archive_read_new());
  archive_read_support_filter_all(reader.get());
  archive_read_support_format_raw(reader.get());
  archive_entry* entry = nullptr;
  const bool whole = archive_read_open_filename(reader.get(), name.c_str(), kReadBlock) == ARCHIVE_OK &&
                     archive_read_next_header(reader.get(), &entry) == ARCHIVE_OK &&
                     archive_read_data_skip(reader.get()) == ARCHIVE_OK;
  if (!whole && archive_filter_code(reader.get(), 0) != ARCHIVE_FILTER_NONE) fail(name, reader.get());
}

}  // namespace

std::unique_ptr<FileSource> open_source(const std::filesystem::path& source) {
  if (std::filesystem::is_directory(source)) return std::make_unique<Folder>(source);
  if (!std::ifstream(source)) {
    throw std::runtime_error(fmt::format("{}: {}", source.string(), std::strerror(errno)));
  }
  if (std::filesystem::is_regular_file(source) && std::filesystem::file_size(source) == 0)
    throw std::runtime_error(
        fmt::format("{}: an empty file, expected an archive or a file of a data set", source.string()));
  if (Archive::recognises(source.string())) return std::make_unique<Archive>(source.string());
  require_whole_compression(source.string());
  return std::make_unique<SingleFile>(source);
}

}  // namespace convoy::data
