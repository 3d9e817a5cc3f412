#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <unordered_set>

#include "partition/graph/brief.h"
#include "partition/graph/parse_json.h"
#include "partition/sharing/clients.h"

namespace convoy::partition::sharing {
namespace {

using Json = nlohmann::json;

class ClientReader {
 public:
  explicit ClientReader(const std::string& where) : where_(where) {}

  ClientFile read(std::string_view text) {
    const Json document = parse_json(text, [&](const std::string& what) { fail(what); });
    if (!document.is_object())
      fail(fmt::format("found {}, expected an object with clients", shown(document)));
    check_fields(document, {"clients", "memory_bytes"});
    const Json& list = member(document, "clients");
    if (!list.is_array() || list.empty())
      fail(fmt::format("clients is {}, expected an array of objects", shown(list)));
    ClientFile file;
    for (const Json& entry : list) {
      label_ = fmt::format("client {}: ", file.clients.size() + 1);
      file.clients.push_back(read_client(entry));
    }
    label_.clear();
    if (document.contains("memory_bytes")) file.memory = whole_number(document, "memory_bytes", 1);
    return file;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    std::string line = label_ + what;  // keep the message on one line, whatever the file contains
    std::replace_if(
        line.begin(), line.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
    throw std::runtime_error(fmt::format("{}: {}", where_, line));
  }

  // Returns a short text of a value for an error message.
  static std::string shown(const Json& value) {
    if (value.is_array()) return value.empty() ? "an empty array" : "an array";
    if (value.is_object()) return "an object";
    return brief(value.dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  const Json& member(const Json& object, const char* field) const {
    if (!object.contains(field)) fail(fmt::format("field {} is missing", field));
    return object[field];
  }

  void check_fields(const Json& object, std::initializer_list<std::string_view> known) const {
    for (const auto& [key, value] : object.items())
      if (std::find(known.begin(), known.end(), key) == known.end())
        fail(fmt::format("unknown field {}", brief(key)));
  }

  Nanoseconds time(const Json& value, const std::string& field) const {
    constexpr double kMost = 9e15;
    const double nanoseconds = value.is_number() ? value.get<double>() * 1e3 : -1;
    if (!(nanoseconds >= 0 && nanoseconds < kMost))
      fail(fmt::format("{} is {}, expected a number of µs, 0 or more and below 104 days", field,
                       shown(value)));
    return std::llround(nanoseconds);
  }
  Nanoseconds time_or_none(const Json& object, const char* field) const {
    return object.contains(field) ? time(object[field], field) : 0;
  }

  std::vector<Nanoseconds> times(const Json& value, const char* field) const {
    if (!value.is_array()) fail(fmt::format("{} is {}, expected an array of times", field, shown(value)));
    std::vector<Nanoseconds> list;
    list.reserve(value.size());
    for (const Json& entry : value) list.push_back(time(entry, fmt::format("{}[{}]", field, list.size())));
    return list;
  }

  Bytes whole_number(const Json& object, const char* field, double least) const {
    constexpr double kMost = 9e15;
    const Json& value = object[field];
    const double number = value.is_number() ? value.get<double>() : -1;
    if (!(number >= least && number < kMost) || number != std::floor(number))
      fail(fmt::format("{} is {}, expected a whole number of bytes, {} or more and below 9e15", field,
                       shown(value), least));
    return static_cast<Bytes>(number);
  }

  Client read_client(const Json& object) {
    if (!object.is_object()) fail(fmt::format("found {}, expected an object", shown(object)));
    Client client;
    const Json& name = member(object, "name");
    if (!name.is_string() || name.get<std::string>().empty())
      fail(fmt::format("name is {}, expected a text", shown(name)));
    client.name = name.get<std::string>();
    if (!names_.insert(client.name).second) fail(fmt::format("name is {}, given twice", shown(name)));
    label_ = fmt::format("client \"{}\": ", brief(client.name));
    check_fields(object, {"name", "copy_us", "kernels", "idle_us", "copy_back_us", "bytes", "arrival_us"});
    client.copy_in = time(member(object, "copy_us"), "copy_us");
    client.kernels = times(member(object, "kernels"), "kernels");
    client.idle = object.contains("idle_us")
                      ? times(object["idle_us"], "idle_us")
                      : std::vector<Nanoseconds>(std::max<std::size_t>(client.kernels.size(), 1) - 1, 0);
    client.copy_back = time_or_none(object, "copy_back_us");
    client.arrival = time_or_none(object, "arrival_us");
    if (object.contains("bytes")) client.bytes = whole_number(object, "bytes", 0);
    return client;
  }

  const std::string& where_;
  std::string label_;  // names the client at the start of an error message
  std::unordered_set<std::string> names_;
};

}  // namespace

ClientFile parse_clients(std::string_view text, const std::string& where) {
  return ClientReader(where).read(text);
}

}  // namespace convoy::partition::sharing
