#include "data/convert/folder_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace convoy::data {
namespace {

namespace fs = std::filesystem;

}  // namespace

Bytes read_file(const fs::path& path) {
  struct Descriptor {
    int value;
    ~Descriptor() {
      if (value >= 0) ::close(value);
    }
  };
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat status {};
  if (file.value < 0 || ::fstat(file.value, &status) != 0) throw std::runtime_error(std::strerror(errno));
  if (static_cast<std::uint64_t>(status.st_size) > kLargestFile)
    throw std::runtime_error(
        fmt::format("a file of {} MiB, expected at most {}", status.st_size >> 20, kLargestFile >> 20));
  Bytes content(static_cast<std::size_t>(status.st_size));
  std::size_t done = 0;
  while (done < content.size()) {
    const auto got = ::read(file.value, content.data() + done, content.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw std::runtime_error(std::strerror(errno));
    if (got == 0) break;  // another process has shortened the file
    done += static_cast<std::size_t>(got);
  }
  content.resize(done);
  return unpack(std::move(content), path.string(), kLargestFile);
}

namespace {

std::size_t size_of(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : size;
}

FileSource::Content content_of(const fs::path& path) {
  return {[path](const FileSource::Content::Room& room) {
            if (room) room(size_of(path));
            return read_file(path);
          },
          [path](const FileSource::Content::Sink& sink) {
            ArchiveReader reader(path.string(), ArchiveReader::Form::compressed_file);
            ArchiveReader::Entry only;
            if (reader.next(only)) reader.stream(sink);
          }};
}

class Folder final : public FileSource {
 public:
  explicit Folder(const fs::path& root) : FileSource(root.string()), root_(root) {}

  Listing list() override {
    Listing listing;
    std::vector<Identity> way;
    walk(root_, "", way, listing);
    std::sort(listing.files.begin(), listing.files.end());
    std::sort(listing.folders.begin(), listing.folders.end());
    return listing;
  }
  bool reads_by_name() const override { return true; }
  Bytes read(const std::string& path) const override { return read_file(root_ / path); }
  std::size_t size(const std::string& path) const override { return size_of(root_ / path); }
  void visit(const Visitor& visitor) const override {
    for (const auto& path : Folder(root_).list().files) {
      if (!visitor(path, content_of(root_ / path))) return;
    }
  }

 private:
  struct Identity {
    dev_t device;
    ino_t inode;
    bool operator==(const Identity&) const = default;
  };

  void walk(const fs::path& folder, const std::string& prefix, std::vector<Identity>& way,
            Listing& listing) const {
    std::error_code error;
    fs::directory_iterator entries(folder, error);
    struct stat status {};
    if (error || ::stat(folder.c_str(), &status) != 0) {
      const std::string reason = error ? error.message() : std::strerror(errno);
      if (prefix.empty())
        throw std::runtime_error(fmt::format("{}: {}, expected a folder that can be read", name(), reason));
      listing.unreadable.push_back({prefix, reason, true});
      return;
    }
    const Identity identity{status.st_dev, status.st_ino};
    if (std::find(way.begin(), way.end(), identity) != way.end()) {
      listing.unreadable.push_back({prefix, "a link to a folder that holds it", true, true});
      return;
    }
    way.push_back(identity);
    for (; entries != fs::directory_iterator(); entries.increment(error)) {
      add(*entries, prefix, way, listing);
      if (error) break;
    }
    if (error) listing.unreadable.push_back({prefix, error.message(), true});
    way.pop_back();
  }

  void add(const fs::directory_entry& entry, const std::string& prefix, std::vector<Identity>& way,
           Listing& listing) const {
    const std::string name = entry.path().filename().string();
    const std::string path = prefix.empty() ? name : prefix + "/" + name;
    std::error_code error;
    const fs::file_status status = entry.status(error);
    if (fs::is_regular_file(status)) {
      listing.files.push_back(path);
    } else if (fs::is_directory(status)) {
      listing.folders.push_back(path);
      walk(entry.path(), path, way, listing);
    } else if (error || !fs::exists(status)) {
      listing.unreadable.push_back({path, dangling(entry.path(), error)});
    } else {
      ++listing.special;
    }
  }

  static std::string dangling(const fs::path& path, const std::error_code& error) {
    std::error_code ignored;
    const fs::path target = fs::read_symlink(path, ignored);
    const std::string reason = error ? error.message() : std::strerror(ENOENT);
    return target.empty() ? reason : fmt::format("a link to {}: {}", target.string(), reason);
  }

  fs::path root_;
};

class SingleFile final : public FileSource {
 public:
  explicit SingleFile(const fs::path& path) : FileSource(path.string()), path_(path) {}
  Listing list() override { return {{path_.filename().string()}, {}, {}}; }
  bool reads_by_name() const override { return true; }
  Bytes read(const std::string&) const override { return read_file(path_); }
  std::size_t size(const std::string&) const override { return size_of(path_); }
  void visit(const Visitor& visitor) const override { visitor(path_.filename().string(), content_of(path_)); }

 private:
  fs::path path_;
};

}  // namespace

std::unique_ptr<FileSource> open_folder(const fs::path& root) { return std::make_unique<Folder>(root); }

std::unique_ptr<FileSource> open_file(const fs::path& file) { return std::make_unique<SingleFile>(file); }

}  // namespace convoy::data
