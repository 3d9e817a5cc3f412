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
  std::size_t position = 0;  // counts the files and links of the archive
};

// Maps the path of a file in the archive to the other paths under which links show the file.
using Aliases = std::unordered_map<std::string, std::vector<std::string>>;

// Adds to `listing` the files and folders that links lead to. A link without a target becomes an
// entry of listing.unreadable. Before the call, `listing` holds the archive's own files and
// folders, sorted; it is sorted after the call, too.
Aliases resolve_links(Listing& listing, const std::map<std::string, ArchiveLink>& links);

}  // namespace convoy::data
