// Links in an archive, resolved as a file system would after unpacking it.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/convert/file_source.h"

namespace convoy::data {

struct ArchiveLink {
  std::string target;  // as stored: relative to the link's folder if symbolic, else to the archive
  bool hard = false;
};

// The names under which a file of the archive appears besides its own.
using Aliases = std::unordered_map<std::string, std::vector<std::string>>;

// `listing` holds the archive's own files and folders, sorted. Adds what the links lead to, or that
// they lead nowhere; the result is sorted again.
Aliases resolve_links(Listing& listing, const std::map<std::string, ArchiveLink>& links);

}  // namespace convoy::data
