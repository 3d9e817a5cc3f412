#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

#include "data/convert/archive_links.h"
#include "data/convert/catalogue.h"
#include "data/convert/file_source.h"
#include "data/convert/folder_source.h"
#include "data/path_kind.h"

namespace convoy::data {
namespace {

namespace fs = std::filesystem;
using Entry = ArchiveReader::Entry;
using Kind = ArchiveReader::Kind;

class Archives final : public FileSource {
 public:
  struct Part {
    // `file` is the archive, such as "shards/cats.tar". The listing puts `prefix`, such as
    // "cats.tar/", before the paths of its files.
    std::string file, prefix;
  };
  // If `nested`, an archive inside an archive counts as a folder of files.
  Archives(std::string name, std::vector<Part> parts, bool nested)
      : FileSource(std::move(name)), parts_(std::move(parts)), nested_(nested) {}

  Listing list() override {
    Listing listing;
    replaced_.clear();
    std::vector<StoredFile> files;
    std::map<std::string, ArchiveLink> links;
    std::set<std::string> folders;
    std::size_t position = 0;
    for_each([&](const Entry& entry, ArchiveReader&) {
      ++position;
      if (entry.path == ".." || entry.path.starts_with("../")) {
        ++listing.outside;
      } else if (entry.kind == Kind::file) {
        files.push_back({entry.path, position});
        add_parents(entry.path, folders);
      } else if (entry.kind == Kind::folder) {
        add_parents(entry.path + "/", folders);
      } else if (entry.kind == Kind::special) {
        ++listing.special;
      } else if (is_itself(entry) && links.contains(entry.path)) {
        return true;
      } else {
        listing.replaced += links.contains(entry.path) ? 1 : 0;
        links[entry.path] = {entry.target, entry.kind == Kind::hard_link, position};
        add_parents(entry.path, folders);
      }
      return true;
    });
    listing.folders.assign(folders.begin(), folders.end());
    keep_last(std::move(files), links, listing);
    aliases_ = resolve_links(listing, links);
    return listing;
  }

  bool reads_by_name() const override { return false; }
  Bytes read(const std::string& path) const override {
    Bytes content;
    visit([&](const std::string& found, const Content& found_content) {
      if (found == path) content = found_content.read({});
      return found != path;
    });
    return content;
  }

  std::size_t size(const std::string&) const override { return 0; }

  void visit(const Visitor& visitor) const override {
    std::size_t position = 0;
    for_each([&](const Entry& entry, ArchiveReader& reader) {
      ++position;
      if (entry.kind != Kind::file || replaced_.contains(position)) return true;
      const auto read = [&](const Content::Room& room) {
        return unpack(reader.read_all(kLargestFile, room), entry.path, kLargestFile);
      };
      const auto stream = [&](const Content::Sink& sink) {
        ArchiveReader inner(reader, entry.path, ArchiveReader::Form::compressed_file);
        Entry only;
        if (inner.next(only)) inner.stream(sink);
      };
      const auto aliases = aliases_.find(entry.path);
      if (aliases == aliases_.end()) return visitor(entry.path, {read, stream});
      // Keep the content: links give this file several names, but an archive's entry is read only
      // once.
      std::optional<Bytes> bytes;
      const auto read_once = [&](const Content::Room& room) {
        if (bytes && room) room(bytes->size());
        if (!bytes) bytes = read(room);
        return *bytes;
      };
      const Content content{read_once, [&](const Content::Sink& sink) { sink(read_once({})); }};
      return visitor(entry.path, content) &&
             std::all_of(aliases->second.begin(), aliases->second.end(),
                         [&](const std::string& alias) { return visitor(alias, content); });
    });
  }

 private:
  using EntryVisitor = std::function<bool(const Entry&, ArchiveReader&)>;
  struct StoredFile {
    std::string path;
    std::size_t position;  // among the entries of all archives
  };

  // Lists the files. If several entries have one name, keeps the last one, as unpacking would.
  // Unpacking also gives a hard link the content that its target has at that time. So a hard link
  // is unreadable here if its target is replaced after it.
  void keep_last(std::vector<StoredFile> files, std::map<std::string, ArchiveLink>& links, Listing& listing) {
    std::ranges::stable_sort(files, {}, &StoredFile::path);
    std::map<std::string, std::size_t> last_of_several;  // the last position of a name
    for (std::size_t i = 0; i < files.size(); ++i) {
      const auto& [path, position] = files[i];
      if (i > 0 && files[i - 1].path == path) last_of_several[path] = position;
      if (i + 1 < files.size() && files[i + 1].path == path) {
        replaced_.insert(position);
      } else if (const auto link = links.find(path); link == links.end()) {
        continue;
      } else if (link->second.hard && link->second.target == path) {
        links.erase(link);
      } else {
        last_of_several[path] = std::max(position, link->second.position);
        if (link->second.position > position)
          replaced_.insert(position);
        else
          links.erase(link), ++listing.replaced;
      }
    }
    listing.replaced += std::ssize(replaced_);
    listing.files.reserve(files.size());
    for (auto& [path, position] : files)
      if (!replaced_.contains(position)) listing.files.push_back(std::move(path));
    std::erase_if(links, [&](const auto& item) {
      const auto& [path, link] = item;
      const auto target = last_of_several.find(link.target);
      const bool changed = link.hard && target != last_of_several.end() && link.position < target->second;
      if (changed)
        listing.unreadable.push_back(
            {path,
             fmt::format("a hard link to {}, which a later file of the archive replaces", link.target)});
      return changed;
    });
  }

  // Returns whether the entry is a hard link to itself, which changes nothing. GNU tar writes one
  // for each file that its command line names twice, as in `tar -cf a.tar train train/cat`.
  static bool is_itself(const Entry& entry) {
    return entry.kind == Kind::hard_link && entry.target == entry.path;
  }

  // Adds all folders above `path`, because an archive may contain files without listing their
  // folders.
  static void add_parents(const std::string& path, std::set<std::string>& folders) {
    for (auto slash = path.rfind('/'); slash != std::string::npos && slash > 0;
         slash = path.rfind('/', slash - 1)) {
      std::string folder = path.substr(0, slash);
      if (folder == "." || !folders.insert(std::move(folder)).second) return;
    }
  }

  // The listing shows an archive as a folder if it comes from a list or a folder of archives, or
  // lies in another archive. Returns the entry of this folder, so that even an empty archive
  // appears in the listing.
  static Entry folder_entry(const std::string& prefix) {
    return {Kind::folder, prefix.substr(0, prefix.size() - 1), ""};
  }

  static void require_new(std::set<std::string>& archives, const std::string& prefix,
                          const std::string& name) {
    if (!archives.insert(prefix).second)
      throw std::runtime_error(fmt::format("{} occurs twice, expected once", name));
  }

  void for_each(const EntryVisitor& visitor) const {
    std::set<std::string> archives;
    for (const Part& part : parts_) {
      require_new(archives, part.prefix, part.file);
      ArchiveReader reader(part.file, ArchiveReader::Form::archive);
      if (!part.prefix.empty() && !visitor(folder_entry(part.prefix), reader)) return;
      if (!for_each_in(reader, part.file, part.prefix, visitor)) return;
    }
  }

  bool for_each_in(ArchiveReader& reader, const std::string& name, const std::string& prefix,
                   const EntryVisitor& visitor) const {
    std::set<std::string> archives;
    for (Entry entry; reader.next(entry);) {
      if (nested_ && prefix.empty() && entry.kind == Kind::file && is_archive_path(entry.path) &&
          !is_hidden(entry.path)) {
        const std::string inner_name = fmt::format("{}: {}", name, entry.path);
        ArchiveReader inner(reader, inner_name, ArchiveReader::Form::archive);
        require_new(archives, entry.path, inner_name);
        if (!visitor(folder_entry(entry.path + "/"), inner)) return false;
        if (!for_each_in(inner, inner_name, entry.path + "/", visitor)) return false;
        continue;
      }
      entry.path = prefix + entry.path;
      if (entry.kind == Kind::hard_link) entry.target = prefix + entry.target;
      if (!visitor(entry, reader)) return false;
    }
    return true;
  }

  std::vector<Part> parts_;
  bool nested_;
  Aliases aliases_;
  std::set<std::size_t> replaced_;  // positions of files that a later entry replaces
};

constexpr std::size_t kMostAlternatives = 1 << 20;

// Expands the inside of a pair of braces: "000..146" or "a,b".
std::vector<std::string> alternatives(const std::string& inside) {
  std::vector<std::string> result;
  const auto dots = inside.find("..");
  const std::string first = inside.substr(0, dots);
  const auto is_number = [](const std::string& text) {
    return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
  };
  if (dots != std::string::npos && is_number(first) && is_number(inside.substr(dots + 2))) {
    const int last = std::stoi(inside.substr(dots + 2));
    for (int i = std::stoi(first); i <= last && result.size() <= kMostAlternatives; ++i)
      result.push_back(fmt::format("{:0{}}", i, first.size()));
    return result;
  }
  for (std::size_t at = 0; at <= inside.size();) {
    const auto comma = std::min(inside.find(',', at), inside.size());
    result.push_back(inside.substr(at, comma - at));
    at = comma + 1;
  }
  return result;
}

std::vector<std::string> archives_in_list(const std::string& source) {
  std::vector<std::string> files;
  for (const std::string& pattern : expand_braces(source)) {
    glob_t found{};
    const int status = ::glob(pattern.c_str(), 0, nullptr, &found);
    for (std::size_t i = 0; i < found.gl_pathc; ++i) files.emplace_back(found.gl_pathv[i]);
    ::globfree(&found);
    if (status != 0) throw std::runtime_error(fmt::format("{}: {}: no such file", source, pattern));
  }
  return files;
}

}  // namespace

bool is_archive_path(const std::string& path) {
  static constexpr std::array kEndings{".tar",     ".tgz",     ".tar.gz", ".tar.xz",
                                       ".tar.bz2", ".tar.zst", ".txz",    ".zip"};
  return std::any_of(kEndings.begin(), kEndings.end(), [&](const char* end) { return path.ends_with(end); });
}

bool is_archive_list(const std::string& source) {
  std::error_code unknown;
  return source.find_first_of("{*?[") != std::string::npos && !fs::exists(source, unknown);
}

std::vector<std::string> expand_braces(const std::string& pattern) {
  const auto open = pattern.find('{'), close = pattern.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return {pattern};
  std::vector<std::string> result;
  const auto ends = expand_braces(pattern.substr(close + 1));
  for (const std::string& middle : alternatives(pattern.substr(open + 1, close - open - 1))) {
    for (const std::string& end : ends) {
      if (result.size() == kMostAlternatives)
        throw std::runtime_error(
            fmt::format("{}: stands for more than {} files", pattern, kMostAlternatives));
      result.push_back(pattern.substr(0, open) + middle + end);
    }
  }
  return result;
}

std::unique_ptr<FileSource> open_archives(const std::string& source) {
  std::vector<Archives::Part> parts;
  if (is_archive_list(source)) {
    for (const std::string& file : archives_in_list(source)) parts.push_back({file, file + "/"});
  } else if (is_folder(source)) {
    for (const std::string& file : open_folder(source)->list().files)
      if (is_archive_path(file) && !is_hidden(file))
        parts.push_back({(fs::path(source) / file).string(), file + "/"});
  } else {
    return std::make_unique<Archives>(source, std::vector<Archives::Part>{{source, ""}}, true);
  }
  return std::make_unique<Archives>(source, std::move(parts), false);
}

std::unique_ptr<FileSource> open_source(const fs::path& source) {
  if (is_archive_list(source.string())) return open_archives(source.string());
  if (is_folder(source)) return open_folder(source);
  if (!std::ifstream(source))
    throw std::runtime_error(fmt::format("{}: {}, expected a folder, an archive or a file that can be read",
                                         source.string(), std::strerror(errno)));
  if (is_file(source) && fs::file_size(source) == 0)
    throw std::runtime_error(
        fmt::format("{}: an empty file, expected an archive or a file of a data set", source.string()));
  if (ArchiveReader::recognises(source.string()))
    return std::make_unique<Archives>(source.string(), std::vector<Archives::Part>{{source.string(), ""}},
                                      false);
  ArchiveReader::require_whole_compression(source.string());
  return open_file(source);
}

}  // namespace convoy::data
