// The protocol of the prediction service's socket: one JSON object a line, in both directions
// (docs/sharing.md has a table).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/sharing/service/request_queue.h"

namespace convoy::app {

inline constexpr std::size_t kLongestLine = std::size_t{32}
                                            << 20;  // bytes of a request, without its line end

// A request as its client wrote it. `id` is JSON text, "null" if the request has none that can be
// read.
struct ParsedRequest {
  std::string id = "null";
  std::string path;                 // absolute; empty if the request has the image's bytes
  std::vector<std::uint8_t> bytes;  // decoded
  std::optional<std::size_t> top;
  std::string error;  // one line that says what is wrong; empty if nothing is
};

// Never throws: a line that is no request gives an error, and the other fields but `id` are then
// empty.
ParsedRequest parse_request(std::string_view line);

// Return a reply as one line with its line end. `names`: the names of the network's classes.
std::string reply_line(const std::string& id, const Answer& answer, const std::vector<std::string>& names);
std::string error_line(const std::string& id, const std::string& error);

}  // namespace convoy::app
