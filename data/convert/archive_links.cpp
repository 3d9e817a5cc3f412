#include "data/convert/archive_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <stdexcept>

namespace convoy::data {
namespace {

namespace fs = std::filesystem;

// The most links that are followed in one path. Linux has the same limit.
constexpr int kMostLinksInAPath = 40;
// The most folders that are entered through links. Without a limit, the folders of an archive whose
// links point to each other could be listed exponentially often.
constexpr int kMostFoldersThroughLinks = 1 << 16;

bool leads_out(const std::string& path) { return path == ".." || path.starts_with("../"); }

std::string joined(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

class Resolver {
 public:
  Resolver(Listing& listing, const std::map<std::string, ArchiveLink>& links)
      : listing_(listing), links_(links), files_(listing.files), folders_(listing.folders) {}

  Aliases run() {
    for (const auto& [path, link] : links_) {
      std::vector<std::string> way{""};
      for (std::size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1))
        way.push_back(path.substr(0, end));
      follow(path, path, way);
    }
    return std::move(aliases_);
  }

 private:
  // Returns the path with all links resolved, or nothing if links form a circle or lead out of the
  // archive.
  std::optional<std::string> canonical(std::string path) const {
    for (int steps = 0; steps < kMostLinksInAPath; ++steps) {
      if (leads_out(path)) return std::nullopt;
      std::size_t end = 0;
      auto link = links_.end();
      while (link == links_.end() && end != std::string::npos) {
        end = path.find('/', end + 1);
        link = links_.find(path.substr(0, end));
      }
      if (link == links_.end()) return path == "." ? "" : path;
      const std::string rest = end == std::string::npos ? "" : path.substr(end);
      const fs::path target = link->second.target;
      if (target.is_absolute()) return std::nullopt;
      const fs::path base = link->second.hard ? fs::path() : fs::path(link->first).parent_path();
      path = (base / (target.string() + rest)).lexically_normal().generic_string();
      if (path.ends_with('/')) path.pop_back();
    }
    return std::nullopt;
  }

  bool holds(const std::vector<std::string>& sorted, const std::string& path) const {
    return std::binary_search(sorted.begin(), sorted.end(), path);
  }

  bool is_folder(const std::string& path) const {
    if (path.empty() || holds(folders_, path)) return true;
    const auto within = [&](const std::string& first) { return first.starts_with(path + "/"); };
    const auto file = std::lower_bound(files_.begin(), files_.end(), path + "/");
    if (file != files_.end() && within(*file)) return true;
    const auto link = links_.lower_bound(path + "/");
    return link != links_.end() && within(link->first);
  }

  // Adds the target of a link to the listing. `link` is the path of the link in the archive, and
  // `shown` is the path under which the listing shows it. The two differ inside a folder that is
  // reached through another link.
  void follow(const std::string& link, const std::string& shown, std::vector<std::string>& way) {
    const auto target = canonical(link);
    if (target && holds(files_, *target)) {
      aliases_[*target].push_back(shown);
      listing_.files.push_back(shown);
    } else if (target && is_folder(*target)) {
      enter(*target, shown, way);
    } else {
      const ArchiveLink& found = links_.at(link);
      listing_.unreadable.push_back({shown, fmt::format("a {}link to {}, which the archive does not hold",
                                                        found.hard ? "hard " : "", found.target)});
    }
  }

  std::set<std::string> children(const std::string& folder) const {
    std::set<std::string> names;
    const std::string prefix = folder.empty() ? "" : folder + "/";
    const auto add = [&](const std::string& path) {
      if (!path.starts_with(prefix)) return false;
      names.insert(path.substr(prefix.size(), path.find('/', prefix.size()) - prefix.size()));
      return true;
    };
    for (const auto* paths : {&files_, &folders_})
      for (auto at = std::lower_bound(paths->begin(), paths->end(), prefix); at != paths->end() && add(*at);)
        ++at;
    for (auto at = links_.lower_bound(prefix); at != links_.end() && add(at->first);) ++at;
    return names;
  }

  // Adds a folder that is reached through a link, together with its content. `way` holds the
  // resolved paths of the folders around this one. A folder that is already in `way` shows a circle
  // of links.
  void enter(const std::string& folder, const std::string& shown, std::vector<std::string>& way) {
    if (std::find(way.begin(), way.end(), folder) != way.end()) {
      listing_.unreadable.push_back({shown, "a link to a folder that holds it", true});
      return;
    }
    if (++entered_ > kMostFoldersThroughLinks)
      throw std::runtime_error(
          fmt::format("{}: more than {} folders through links", shown, kMostFoldersThroughLinks));
    way.push_back(folder);
    listing_.folders.push_back(shown);
    for (const std::string& name : children(folder)) {
      const std::string path = joined(folder, name), seen = joined(shown, name);
      if (links_.contains(path)) {
        follow(path, seen, way);
      } else if (holds(files_, path)) {
        aliases_[path].push_back(seen);
        listing_.files.push_back(seen);
      } else {
        enter(path, seen, way);
      }
    }
    way.pop_back();
  }

  Listing& listing_;
  const std::map<std::string, ArchiveLink>& links_;
  const std::vector<std::string> files_, folders_;  // without those that are reached through links
  Aliases aliases_;
  int entered_ = 0;
};

}  // namespace

Aliases resolve_links(Listing& listing, const std::map<std::string, ArchiveLink>& links) {
  if (links.empty()) return {};
  Aliases aliases = Resolver(listing, links).run();
  std::sort(listing.files.begin(), listing.files.end());
  std::sort(listing.folders.begin(), listing.folders.end());
  return aliases;
}

}  // namespace convoy::data
