// Parses small JSON files, with errors that name a field.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "partition/graph/brief.h"

namespace convoy::partition {

// Refuses an object that has a field twice. nlohmann::json itself would keep the last one without
// an error. `fail` must throw.
template <typename Fail>
class EachFieldOnce {
 public:
  using Json = nlohmann::json;
  explicit EachFieldOnce(const Fail& fail) : fail_(fail) {}

  // Takes the events of nlohmann::json::parse().
  void take(Json::parse_event_t event, const Json& value) {
    if (event == Json::parse_event_t::object_start)
      objects_.push_back({objects_.empty() ? "" : objects_.back().last, "", {}});
    if (event == Json::parse_event_t::object_end) objects_.pop_back();
    if (event != Json::parse_event_t::key) return;
    Object& object = objects_.back();
    last_ = object.last = value.get<std::string>();
    if (object.fields.insert(last_).second) return;
    fail_(fmt::format("{}\"{}\" is given twice", object.name.empty() ? "field " : brief(object.name) + ": ",
                      brief(last_)));
  }
  // The field that was read last, in any object.
  const std::string& last() const { return last_; }

 private:
  struct Object {
    std::string name;  // the field whose value is the object or a list with it; empty for the outermost
    std::string last;  // the field of this object that was read last
    std::unordered_set<std::string> fields;
  };
  const Fail& fail_;
  std::vector<Object> objects_;
  std::string last_;  // the last key that was read
};

enum class Comments { kRefused, kIgnored };

// Calls `fail` with a message if the text is not JSON, if it has a number beyond the range of
// double, or if an object has a field twice. `fail` must throw.
template <typename Fail>
nlohmann::json parse_json(std::string_view text, const Fail& fail, Comments comments = Comments::kRefused) {
  using Json = nlohmann::json;
  EachFieldOnce once(fail);
  const auto follow = [&](int, Json::parse_event_t event, Json& value) {
    once.take(event, value);
    return true;
  };
  try {
    return Json::parse(text, follow, true, comments == Comments::kIgnored);
  } catch (const Json::parse_error& error) {
    fail(fmt::format("not JSON at byte {}", error.byte));
  } catch (const Json::out_of_range&) {
    fail(fmt::format("{} is too large", once.last().empty() ? "a number" : brief(once.last())));
  }
  return {};
}

}  // namespace convoy::partition
