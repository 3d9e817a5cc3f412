// Writes a LaneChoice (lane_choice.h) as a text: for the output, for the tuning file, and for other
// ranks.
#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "app/concurrency/lane_choice.h"
#include "app/execute/lane_plan.h"

namespace convoy::app {
namespace {

using Json = nlohmann::json;

// Computes the 64-bit FNV-1a hash of texts and numbers.
class Fingerprint {
 public:
  void add(std::string_view text) {
    for (const char c : text) add_byte(static_cast<std::uint8_t>(c));
    add_byte(0);
  }
  void add(std::int64_t number) {
    for (int byte = 0; byte < 8; ++byte) add_byte(static_cast<std::uint8_t>(number >> (8 * byte)));
  }
  std::uint64_t value() const { return value_; }

 private:
  void add_byte(std::uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001b3u; }
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

double less_percent(double ms, double before_ms) { return before_ms > 0 ? 100 * (1 - ms / before_ms) : 0; }

}  // namespace

std::string LaneChoice::text() const {
  std::string result = fmt::format("{}, {} fork{}", schedule, forks, forks == 1 ? "" : "s");
  result += fmt::format("; predicted {:.1f} % less time than one lane",
                        less_percent(predicted_ms, predicted_before_ms));
  if (measured_ms > 0)
    result += fmt::format(", measured {:.1f} %", less_percent(measured_ms, measured_before_ms));
  if (source == Source::model) return result + " (by the model alone)";
  if (source == Source::cached) return result + " (from the tuning file)";
  return result + fmt::format(" (found in {:.2f} s)", analysis_ms * 1e-3);
}

std::string write_choice(const LaneChoice& choice) {
  Json holds = Json::array();
  for (const auto& [first, second] : choice.lanes.holds) holds.push_back({first, second});
  return Json{{"schedule", choice.schedule},
              {"source", static_cast<int>(choice.source)},
              {"order", choice.lanes.order},
              {"lane", choice.lanes.lane},
              {"holds", holds},
              {"urgent", choice.lanes.urgent},
              {"lanes", choice.lane_count},
              {"forks", choice.forks},
              {"predicted_ms", choice.predicted_ms},
              {"predicted_before_ms", choice.predicted_before_ms},
              {"measured_ms", choice.measured_ms},
              {"measured_before_ms", choice.measured_before_ms},
              {"analysis_ms", choice.analysis_ms}}
      .dump();
}

LaneChoice read_choice(const std::string& text, const Program& program) {
  LaneChoice choice;
  try {
    const Json json = Json::parse(text);
    choice.schedule = json.at("schedule");
    const int source = json.at("source");
    if (source < 0 || source > static_cast<int>(LaneChoice::Source::cached))
      throw std::invalid_argument(fmt::format("found source {}, expected 0 to 2", source));
    choice.source = static_cast<LaneChoice::Source>(source);
    json.at("order").get_to(choice.lanes.order);
    json.at("lane").get_to(choice.lanes.lane);
    json.at("holds").get_to(choice.lanes.holds);
    json.at("urgent").get_to(choice.lanes.urgent);
    choice.lane_count = json.at("lanes");
    choice.forks = json.at("forks");
    choice.predicted_ms = json.at("predicted_ms");
    choice.predicted_before_ms = json.at("predicted_before_ms");
    choice.measured_ms = json.at("measured_ms");
    choice.measured_before_ms = json.at("measured_before_ms");
    choice.analysis_ms = json.at("analysis_ms");
    Program arranged = program;
    arranged.arrange(choice.lanes);
    if (choice.lanes.empty()) throw std::invalid_argument("found no lanes");
    plan_lanes(arranged, 1);
  } catch (const Json::exception& error) {
    throw std::invalid_argument(fmt::format("the choice of lanes cannot be read: {}", error.what()));
  } catch (const std::logic_error& error) {
    throw std::invalid_argument(fmt::format("the choice of lanes is not one of this step: {}", error.what()));
  }
  return choice;
}

std::string choice_key(const std::string& device, const Program& program) {
  Fingerprint print;
  for (const Instruction& instruction : program.instructions()) {
    print.add(instruction.layer);
    print.add(instruction.kind);
    print.add(instruction.bytes);
    print.add(static_cast<std::int64_t>(instruction.flops));
  }
  for (const std::vector<int>& waits : dependences_of(program)) {
    for (const int of : waits) print.add(of);
    print.add(std::int64_t{-1});
  }
  return fmt::format("{} | lanes of {} instructions {:016x}", device, program.instructions().size(),
                     print.value());
}

}  // namespace convoy::app
