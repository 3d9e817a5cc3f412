// Resolves the links in an archive as a file system would after unpacking it.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/convert/file_source.h"

namespace convoy::data {

struct ArchiveLink {
  // The target as stored. The target of a symbolic link is relative to the link's folder, and the
  // target of a hard link is relative to the archive's root.
  std::string target;
  bool hard = false;
};

// For each path of a file in the archive: the other paths under which links show the file.
using Aliases = std::unordered_map<std::string, std::vector<std::string>>;

// Adds to `listing` the files and folders that the links lead to, and the links that lead nowhere.
// `listing` holds the archive's own files and folders, sorted before and after the call.
Aliases resolve_links(Listing& listing, const std::map<std::string, ArchiveLink>& links);

}  // namespace convoy::data
