#include "data/convert/archive_reader.h"

#include <archive_entry.h>
#include <fmt/format.h>
#include <locale.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>

namespace convoy::data {
namespace {

constexpr std::size_t kReadBlock = 1 << 18;

bool is_compressed(std::span<const std::uint8_t> content) {
  const auto starts_with = [&](std::initializer_list<std::uint8_t> magic) {
    return content.size() >= magic.size() && std::equal(magic.begin(), magic.end(), content.begin());
  };
  return is_gzip(content) || starts_with({0xFD, '7', 'z', 'X', 'Z'}) || starts_with({'B', 'Z', 'h'}) ||
         starts_with({0x28, 0xB5, 0x2F, 0xFD}) || starts_with({0x04, 0x22, 0x4D, 0x18});
}

bool is_compressed_file(const std::string& path) {
  std::array<std::uint8_t, 6> start{};
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(start.data()), start.size());
  return is_compressed(start);
}

// Enables only the decompressors that libarchive contains. archive_read_support_filter_all() would
// also allow it to start external programs on a user's file. GzipReader unpacks the outermost gzip.
void support_filters(archive* reader) {
  archive_read_support_filter_gzip(reader);
  archive_read_support_filter_bzip2(reader);
  archive_read_support_filter_xz(reader);
  archive_read_support_filter_lzma(reader);
  archive_read_support_filter_zstd(reader);
  archive_read_support_filter_lz4(reader);
  archive_read_support_filter_compress(reader);
}

void support_archives(archive* reader) {
  support_filters(reader);
  archive_read_support_format_tar(reader);
  // Read on after the end of a tar file: another one may follow, and checksums come last.
  archive_read_set_format_option(reader, "tar", "read_concatenated_archives", "1");
  archive_read_support_format_zip(reader);
}

void support_compressed_file(archive* reader) {
  support_filters(reader);
  archive_read_support_format_raw(reader);
}

// While an object exists, names of files are UTF-8 in this thread. In the locale "C" libarchive
// cannot give a name that a zip archive marks as UTF-8 and that is not ASCII.
class Utf8Names {
 public:
  Utf8Names() {
    static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    if (utf8 != nullptr) before_ = ::uselocale(utf8);
  }
  ~Utf8Names() {
    if (before_ != nullptr) ::uselocale(before_);
  }
  Utf8Names(const Utf8Names&) = delete;
  Utf8Names& operator=(const Utf8Names&) = delete;

 private:
  locale_t before_ = nullptr;
};

ArchiveReader::Kind kind_of(archive_entry* entry) {
  using Kind = ArchiveReader::Kind;
  if (archive_entry_hardlink(entry) != nullptr || archive_entry_hardlink_utf8(entry) != nullptr)
    return Kind::hard_link;
  switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
      return Kind::file;
    case AE_IFDIR:
      return Kind::folder;
    case AE_IFLNK:
      return Kind::symbolic_link;
    default:
      return Kind::special;
  }
}

std::string text_of(const char* raw, const char* utf8) {
  return raw != nullptr ? raw : utf8 != nullptr ? utf8 : "";
}

std::string normalised(const std::string& raw) {
  std::string path = std::filesystem::path(raw).lexically_normal().relative_path().generic_string();
  if (path.ends_with('/')) path.pop_back();
  return path;
}

[[noreturn]] void fail_above(std::size_t most, const std::string& name) {
  throw std::runtime_error(fmt::format("{}: more than {} MiB unpacked", name, most >> 20));
}

Bytes gunzip(std::span<const std::uint8_t> content, const std::string& name, std::size_t most) {
  GzipReader reader([&](std::span<std::uint8_t> to) {
    const std::size_t count = std::min(to.size(), content.size());
    std::copy_n(content.begin(), count, to.begin());
    content = content.subspan(count);
    return count;
  });
  Bytes result;
  try {
    for (std::size_t size = 0, got = 1; got > 0; size += got) {
      result.resize(size + kReadBlock);
      got = reader.read(std::span(result).subspan(size));
      result.resize(size + got);
      if (size > most) break;
    }
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("{}: damaged or cut short: {}", name, error.what()));
  }
  if (result.size() > most) fail_above(most, name);
  return result;
}

}  // namespace

ArchiveReader::ArchiveReader(const std::string& file, Form form) : name_(file), reader_(archive_read_new()) {
  form == Form::archive ? support_archives(reader_.get()) : support_compressed_file(reader_.get());
  if (form == Form::archive && is_compressed_file(file)) {
    const auto unpacked = std::make_shared<ArchiveReader>(file, Form::compressed_file);
    Entry only;
    unpacked->next(only);
    open_input([unpacked](std::span<std::uint8_t> to) { return unpacked->read(to); });
  } else if (is_gzip_file(file)) {
    open_input(input_of(file));
  } else if (archive_read_open_filename(reader_.get(), file.c_str(), kReadBlock) != ARCHIVE_OK) {
    fail();
  }
}

ArchiveReader::ArchiveReader(ArchiveReader& outer, std::string name, Form form)
    : name_(std::move(name)), reader_(archive_read_new()) {
  form == Form::archive ? support_archives(reader_.get()) : support_compressed_file(reader_.get());
  open_input([&outer](std::span<std::uint8_t> to) { return outer.read(to); });
}

void ArchiveReader::open_input(Input input) {
  block_.resize(kReadBlock);
  input_ = std::make_unique<GzipReader>(std::move(input));
  if (archive_read_open(reader_.get(), this, nullptr, read_input, nullptr) != ARCHIVE_OK) fail();
}

ArchiveReader::~ArchiveReader() = default;

void ArchiveReader::fail() const {
  if (input_error_.starts_with(name_ + ": ")) throw std::runtime_error(input_error_);
  const char* reason = archive_error_string(reader_.get());
  throw std::runtime_error(
      fmt::format("{}: damaged or cut short: {}", name_, reason == nullptr ? "unknown format" : reason));
}

// Called by libarchive for the next bytes of the archive. No exception may leave the callback,
// because libarchive is written in C.
la_ssize_t ArchiveReader::read_input(archive* reader, void* self, const void** buffer) {
  auto& ours = *static_cast<ArchiveReader*>(self);
  *buffer = ours.block_.data();
  try {
    const std::size_t count = ours.input_->read(ours.block_);
    ours.end_.pass(std::span(ours.block_).first(count));
    if (ours.end_.is_empty()) throw std::runtime_error(ours.name_ + ": empty, expected files");
    return static_cast<la_ssize_t>(count);
  } catch (const std::exception& error) {
    ours.input_error_ = error.what();
    archive_set_error(reader, EIO, "%s", error.what());
    return -1;
  }
}

bool ArchiveReader::next(Entry& result) {
  const Utf8Names names;
  archive_entry* entry = nullptr;
  // ARCHIVE_RETRY says that libarchive has skipped a damaged header, and with it a file.
  const int status = archive_read_next_header(reader_.get(), &entry);
  if (status == ARCHIVE_EOF) {
    require_end();
    return false;
  }
  if (status != ARCHIVE_OK && status != ARCHIVE_WARN) fail();
  const std::string path = text_of(archive_entry_pathname(entry), archive_entry_pathname_utf8(entry));
  if (path.empty()) throw std::runtime_error(name_ + ": holds a file without a readable name");
  result.path = normalised(path);
  result.kind = kind_of(entry);
  result.target.clear();
  if (result.kind == Kind::hard_link)
    result.target = normalised(text_of(archive_entry_hardlink(entry), archive_entry_hardlink_utf8(entry)));
  if (result.kind == Kind::symbolic_link)
    result.target = text_of(archive_entry_symlink(entry), archive_entry_symlink_utf8(entry));
  return true;
}

// Throws if the archive has no end, or if what libarchive has not read of it is damaged.
void ArchiveReader::require_end() {
  try {
    while (input_ != nullptr) {
      const std::size_t count = input_->read(block_);
      if (count == 0) break;
      end_.pass(std::span(block_).first(count));
    }
    if (archive_filter_code(reader_.get(), 0) != ARCHIVE_FILTER_NONE) return;
    const int format = archive_format(reader_.get()) & ARCHIVE_FORMAT_BASE_MASK;
    const ArchiveEnd end = input_ != nullptr ? end_ : end_of_file(name_);
    if (format == ARCHIVE_FORMAT_TAR) end.require_tar();
    if (format == ARCHIVE_FORMAT_ZIP) end.require_zip(input_ != nullptr);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("{}: damaged or cut short: {}", name_, error.what()));
  }
}

std::size_t ArchiveReader::read(std::span<std::uint8_t> to) {
  const la_ssize_t got = archive_read_data(reader_.get(), to.data(), to.size());
  if (got < 0) fail();
  return static_cast<std::size_t>(got);
}

void ArchiveReader::stream(const std::function<void(std::span<const std::uint8_t>)>& sink) {
  Bytes block(kReadBlock);
  while (const std::size_t got = read(block)) sink(std::span(block).first(got));
}

Bytes ArchiveReader::read_all(std::size_t most, const std::function<void(std::size_t)>& room) {
  Bytes content;
  for (std::size_t size = 0;;) {
    if (room) room(size + kReadBlock);
    content.resize(size + kReadBlock);
    const std::size_t got = read(std::span(content).subspan(size));
    size += got;
    content.resize(size);
    if (size > most)
      throw std::runtime_error(fmt::format("{}: holds a file of more than {} MiB", name_, most >> 20));
    if (got == 0) return content;
  }
}

bool ArchiveReader::recognises(const std::string& file) {
  try {
    ArchiveReader reader(file, Form::archive);
    archive_entry* entry = nullptr;
    archive_read_next_header(reader.reader_.get(), &entry);
    return archive_format(reader.reader_.get()) != 0;
  } catch (const std::runtime_error&) {
    return false;
  }
}

void ArchiveReader::require_whole_compression(const std::string& file) {
  if (!is_compressed_file(file)) return;
  ArchiveReader reader(file, Form::compressed_file);
  for (Entry entry; reader.next(entry);) reader.stream([](std::span<const std::uint8_t>) {});
}

Bytes unpack(Bytes content, const std::string& name, std::size_t most) {
  if (is_gzip(content)) return gunzip(content, name, most);
  if (!is_compressed(content)) return content;
  const std::unique_ptr<archive, void (*)(archive*)> reader(archive_read_new(),
                                                            [](archive* a) { archive_read_free(a); });
  support_compressed_file(reader.get());
  archive_entry* entry = nullptr;
  Bytes result;
  la_ssize_t got = -1;
  if (archive_read_open_memory(reader.get(), content.data(), content.size()) == ARCHIVE_OK &&
      archive_read_next_header(reader.get(), &entry) == ARCHIVE_OK) {
    for (std::size_t size = 0;; size += static_cast<std::size_t>(got)) {
      result.resize(size + kReadBlock);
      got = archive_read_data(reader.get(), result.data() + size, kReadBlock);
      if (got <= 0) result.resize(size);
      if (got <= 0) break;
      if (size > most) fail_above(most, name);
    }
  }
  if (got < 0) {
    const char* reason = archive_error_string(reader.get());
    throw std::runtime_error(
        fmt::format("{}: damaged or cut short: {}", name, reason == nullptr ? "unknown format" : reason));
  }
  return result;
}

}  // namespace convoy::data
