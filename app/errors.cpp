#include "app/errors.h"

#include <fmt/format.h>

#include <algorithm>

namespace convoy::app {

void check_belongs(const std::string& flag, bool given, const std::string& to, const std::string& found,
                   const std::vector<std::string_view>& fitting) {
  if (!given || std::ranges::find(fitting, found) != fitting.end()) return;
  throw UsageError(
      fmt::format("{}: belongs to {} {}, found {} {}", flag, to, fmt::join(fitting, " or "), to, found));
}

}  // namespace convoy::app
