#include "app/sharing/service/protocol.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <unordered_set>

#include "app/json_text.h"
#include "partition/graph/brief.h"

namespace convoy::app {
namespace {

using Json = nlohmann::json;

constexpr int kDeepest = 32;              // the most levels of nested objects and arrays
constexpr std::size_t kLongestId = 1024;  // in bytes; limited because a reply repeats the id

struct Malformed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string shown(const Json& value) {
  if (value.is_array()) return "an array";
  if (value.is_object()) return "an object";
  if (const auto* text = value.get_ptr<const std::string*>()) return json_text(Json(partition::brief(*text)));
  return json_text(value);
}

// Parses JSON. Throws if an object has a field twice, because the library would keep the last one
// without an error.
Json parse(std::string_view line) {
  std::vector<std::unordered_set<std::string>> fields;
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kDeepest) throw Malformed(fmt::format("more than {} levels of arrays and objects", kDeepest));
    if (event == Json::parse_event_t::object_start) fields.emplace_back();
    if (event == Json::parse_event_t::object_end) fields.pop_back();
    if (event == Json::parse_event_t::key && !fields.back().insert(parsed.get<std::string>()).second)
      throw Malformed(fmt::format("field {} is given twice", shown(parsed)));
    return true;
  };
  try {
    return Json::parse(line, check);
  } catch (const Json::parse_error& error) {
    throw Malformed(fmt::format("not JSON at byte {}", error.byte));
  } catch (const Json::out_of_range&) {  // for example 1e999
    throw Malformed("a number is too large");
  }
}

bool is_base64(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
}

// Returns the bytes that base64 text stands for. Checks every character itself, because OpenSSL
// ignores spaces and accepts padding anywhere. Throws Malformed.
std::vector<std::uint8_t> decode_base64(const std::string& text) {
  const std::size_t end = text.find_last_not_of('=') + 1;
  const auto wrong =
      std::find_if_not(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), is_base64);
  const auto at = static_cast<std::size_t>(wrong - text.begin());
  if (at < end || text.size() % 4 != 0 || text.size() - end > 2)
    throw Malformed(fmt::format("bytes is no base64 at character {} of {}", at + 1, text.size()));
  std::vector<std::uint8_t> bytes(text.size() / 4 * 3);
  const int size = ::EVP_DecodeBlock(bytes.data(), reinterpret_cast<const unsigned char*>(text.data()),
                                     static_cast<int>(text.size()));
  if (size != std::ssize(bytes)) throw Malformed("bytes is no base64");
  bytes.erase(bytes.end() - static_cast<std::ptrdiff_t>(text.size() - end), bytes.end());
  return bytes;
}

const std::string& text_of(const Json& value, const char* field) {
  if (const auto* text = value.get_ptr<const std::string*>(); text != nullptr && !text->empty()) return *text;
  throw Malformed(fmt::format("{} is {}, expected a text", field, shown(value)));
}

std::string path_of(const Json& value) {
  const std::string& path = text_of(value, "image");
  if (path.front() != '/' || path.find('\0') != std::string::npos)
    throw Malformed(fmt::format("image is {}, expected an absolute path", shown(value)));
  return path;
}

std::size_t top_of(const Json& value) {
  const double number = value.is_number() ? value.get<double>() : 0;
  if (!(number >= 1 && number <= 1 << 24) || number != std::floor(number))
    throw Malformed(fmt::format("top is {}, expected a whole number from 1 to {}", shown(value), 1 << 24));
  return static_cast<std::size_t>(number);
}

void read_fields(const Json& object, ParsedRequest& request) {
  if (!object.is_object()) throw Malformed(fmt::format("found {}, expected an object", shown(object)));
  if (object.contains("id")) {
    std::string id = json_text(object["id"]);
    if (id.size() > kLongestId)
      throw Malformed(fmt::format("id has {} bytes, expected at most {}", id.size(), kLongestId));
    request.id = std::move(id);
  }
  for (const auto& [key, value] : object.items()) {
    if (key == "image")
      request.path = path_of(value);
    else if (key == "bytes")
      request.bytes = decode_base64(text_of(value, "bytes"));
    else if (key == "top")
      request.top = top_of(value);
    else if (key != "id")
      throw Malformed(fmt::format("unknown field {}, expected id, image, bytes or top", shown(Json(key))));
  }
  if (object.contains("image") == object.contains("bytes"))
    throw Malformed(fmt::format("found {} image and bytes, expected one of them",
                                object.contains("image") ? "both" : "neither"));
}

}  // namespace

ParsedRequest parse_request(std::string_view line) {
  ParsedRequest request;
  try {
    read_fields(parse(line), request);
  } catch (const Malformed& error) {
    request = {std::move(request.id), {}, {}, {}, error.what()};
  }
  return request;
}

std::string reply_line(const std::string& id, const Answer& answer, const std::vector<std::string>& names) {
  if (!answer.error.empty()) return error_line(id, answer.error);
  std::string classes, probabilities;
  for (const RankedClass& one : answer.classes) {
    const char* comma = classes.empty() ? "" : ", ";
    const std::string& name = names.at(static_cast<std::size_t>(one.number));
    classes += fmt::format("{}{}", comma, json_text(Json(name)));
    probabilities += std::isnan(one.probability) ? fmt::format("{}null", comma)
                                                 : fmt::format("{}{}", comma, one.probability);
  }
  return fmt::format("{{\"id\": {}, \"classes\": [{}], \"probabilities\": [{}], \"ms\": {:.3f}}}\n", id,
                     classes, probabilities, answer.ms);
}

std::string error_line(const std::string& id, const std::string& error) {
  return fmt::format("{{\"id\": {}, \"error\": {}}}\n", id, json_text(Json(error)));
}

}  // namespace convoy::app
