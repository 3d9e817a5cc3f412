// The protocol of the prediction service's socket: each line is one JSON object, in both
// directions. docs/sharing.md has a table of the fields.
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

// A request as the client wrote it. `id` is JSON text. It is "null" if the request has no id that
// can be read.
struct ParsedRequest {
  std::string id = "null";
  std::string path;                 // absolute; empty if the request has the image's bytes
  std::vector<std::uint8_t> bytes;  // decoded from base64
  std::optional<std::size_t> top;
  std::string error;  // one line that says what is wrong; empty if nothing is
};

// Parses a line and never throws. If the line is no valid request, sets `error` and leaves all
// other fields but `id` empty.
ParsedRequest parse_request(std::string_view line);

// Return a reply as one line with its line end. `names` are the names of the network's classes.
std::string reply_line(const std::string& id, const Answer& answer, const std::vector<std::string>& names);
std::string error_line(const std::string& id, const std::string& error);

}  // namespace convoy::app
