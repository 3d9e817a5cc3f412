// Implements members.h. Members are the trainings that `convoy train --members` runs together.
#include "app/training/members.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "app/errors.h"
#include "app/json_text.h"
#include "app/training/member_keys.h"
#include "app/training/option_table.h"
#include "data/atomic_file.h"

namespace convoy::app {
namespace {

using nlohmann::json;

// Returns a text as a field of CSV (RFC 4180).
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string number_text(double value) { return std::isnan(value) ? "" : fmt::format("{}", value); }
double number_of(const std::string& text) {
  return text.empty() ? std::numeric_limits<double>::quiet_NaN() : std::stod(text);
}

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

// The first columns of members.csv. After them comes a column for each option in which members
// differ.
constexpr std::string_view kColumns =
    "member,status,steps,train_loss,test_accuracy,best_test_accuracy,parameters_sha256";
constexpr std::size_t kResultColumns = 7;

MemberResult result_of(const std::string& line, const std::string& path) {
  std::vector<std::string> fields;
  std::istringstream text(line);
  for (std::string field; std::getline(text, field, ',') && fields.size() < kResultColumns;)
    fields.push_back(field);
  fields.resize(kResultColumns);
  const auto status = find_choice<MemberStatus>(fields[1]);
  try {
    if (!status) throw std::invalid_argument("no such status");
    return {*status,  std::stoll(fields[2]), number_of(fields[3]), number_of(fields[4]), number_of(fields[5]),
            fields[6]};
  } catch (const std::logic_error&) {
    throw std::runtime_error(fmt::format("{}: found '{}', expected the result of a member", path, line));
  }
}

struct Spread {
  double mean = 0, deviation = 0;
};
Spread spread_of(const std::vector<double>& values) {
  Spread spread;
  for (const double value : values) spread.mean += value / static_cast<double>(values.size());
  for (const double value : values) spread.deviation += (value - spread.mean) * (value - spread.mean);
  spread.deviation =
      values.size() > 1 ? std::sqrt(spread.deviation / static_cast<double>(values.size() - 1)) : 0;
  return spread;
}

std::string percent(double share) { return std::isnan(share) ? "-" : fmt::format("{:.2f} %", 100 * share); }

}  // namespace

Members::Members(std::vector<TrainOptions> options)
    : out_(options.at(0).out), options_(std::move(options)), results_(options_.size()) {
  differing_ = keys_that_differ(options_);
  for (const std::string& key : differing_) check_member_key(key);
  check_no_member_twice(options_);
  for (int member = 0; member < size(); ++member) {
    TrainOptions& own = options_[static_cast<std::size_t>(member)];
    own.out = fmt::format("{}/members/{}", out_, member + 1);
    own.members.clear();
    own.halving = 0;
    // Keep at least two checkpoints. If the process is killed while members save their checkpoints,
    // only some members have the newest one. But all have the one before it, from which they can
    // resume.
    own.keep_checkpoints = std::max<std::int64_t>(own.keep_checkpoints, 2);
  }
}

std::vector<int> Members::running() const {
  std::vector<int> members;
  for (int member = 0; member < size(); ++member)
    if (result(member).status == MemberStatus::running) members.push_back(member);
  return members;
}

std::vector<std::vector<int>> Members::shapes() const {
  std::vector<std::vector<int>> shapes;
  std::map<std::string, std::size_t> number_of;
  for (const int member : running()) {
    const auto [at, inserted] = number_of.emplace(shape_of(options(member)), shapes.size());
    if (inserted) shapes.emplace_back();
    shapes[at->second].push_back(member);
  }
  return shapes;
}

void Members::read(std::int64_t total_steps) {
  std::ifstream file(csv_path());
  if (!file) return;
  std::string line;
  std::getline(file, line);
  std::vector<MemberResult> results;
  while (std::getline(file, line)) results.push_back(result_of(line, csv_path()));
  if (results.size() != results_.size())
    throw UsageError(fmt::format("--members: found {} members, but the run to resume has {}", results_.size(),
                                 results.size()));
  results_ = std::move(results);
  for (MemberResult& r : results_)
    if (r.status == MemberStatus::finished && r.steps < total_steps) r.status = MemberStatus::running;
}

void Members::write() const {
  std::string text(kColumns);
  for (const std::string& key : differing_) text += "," + key;
  text += "\n";
  for (int member = 0; member < size(); ++member) {
    const MemberResult& r = result(member);
    text += fmt::format("{},{},{},{},{},{},{}", member + 1, name_of(r.status), r.steps, number_text(r.loss),
                        number_text(r.accuracy), number_text(r.best_accuracy), r.parameters_sha256);
    const json values = to_json(options(member));
    for (const std::string& key : differing_) text += "," + csv_field(text_of(values.at(key)));
    text += "\n";
  }
  data::write_file_atomically(csv_path(), text);
}

// Sends the results as JSON, which has no NaN: a NaN becomes null, and null is read as NaN.
void Members::share(const comm::Communicator& ranks, const std::vector<int>& own) {
  json mine = json::array();
  for (const int member : own) {
    const MemberResult& r = result(member);
    mine.push_back(
        {member, name_of(r.status), r.steps, r.loss, r.accuracy, r.best_accuracy, r.parameters_sha256});
  }
  std::string all;
  for (const std::string& text : ranks.gather(mine.dump(), 0, "results of the members")) all += text + "\n";
  std::istringstream lines(ranks.broadcast(std::move(all), 0, "results of the members"));
  const auto number = [](const json& value) {
    return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
  };
  for (std::string line; std::getline(lines, line);)
    for (const json& row : json::parse(line))
      result(row.at(0).get<int>()) = {find_choice<MemberStatus>(row.at(1).get<std::string>()).value(),
                                      row.at(2).get<std::int64_t>(),
                                      number(row.at(3)),
                                      number(row.at(4)),
                                      number(row.at(5)),
                                      row.at(6).get<std::string>()};
}

std::vector<int> Members::halve(std::int64_t step) {
  const auto done = [&](const MemberResult& r) {
    return r.status == MemberStatus::stopped && r.steps == step;
  };
  std::vector<int> members = running();
  if (members.size() < 2 || std::ranges::any_of(results_, done)) return {};
  const auto key = [&](int member) {
    return std::isnan(result(member).accuracy) ? -1 : result(member).accuracy;
  };
  std::ranges::stable_sort(members, [&](int a, int b) { return key(a) > key(b); });
  members.erase(members.begin(), members.begin() + (std::ssize(members) + 1) / 2);
  for (const int member : members) result(member).status = MemberStatus::stopped;
  return members;
}

std::string Members::describe(int member) const {
  const json values = to_json(options(member));
  std::vector<std::string> parts;
  for (const std::string& key : differing_)
    parts.push_back(fmt::format("{}={}", key, text_of(values.at(key))));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string Members::table() const {
  std::size_t width = 6;
  for (int member = 0; member < size(); ++member) width = std::max(width, describe(member).size());
  std::string text = fmt::format("{:>6}  {:<{}}  {:>9}  {:>9}  {:>9}  {}\n", "member", "values", width,
                                 "loss", "accuracy", "best", "status");
  std::vector<double> losses, accuracies;
  int best = -1;
  for (int member = 0; member < size(); ++member) {
    const MemberResult& r = result(member);
    text += fmt::format("{:>6}  {:<{}}  {:>9}  {:>9}  {:>9}  {} after step {}\n", member + 1,
                        describe(member), width, std::isnan(r.loss) ? "-" : fmt::format("{:.4f}", r.loss),
                        percent(r.accuracy), percent(r.best_accuracy), name_of(r.status), r.steps);
    if (r.status != MemberStatus::finished) continue;
    losses.push_back(r.loss);
    if (std::isnan(r.accuracy)) continue;
    accuracies.push_back(r.accuracy);
    if (best < 0 || r.accuracy > result(best).accuracy) best = member;
  }
  if (losses.empty()) return text;
  const Spread loss = spread_of(losses);
  text += fmt::format("{} finished: loss {:.4f} ± {:.4f}", losses.size(), loss.mean, loss.deviation);
  if (best >= 0) {
    const Spread accuracy = spread_of(accuracies);
    text += fmt::format(", test accuracy {:.2f} ± {:.2f} %, best {:.2f} % of member {}", 100 * accuracy.mean,
                        100 * accuracy.deviation, 100 * result(best).accuracy, best + 1);
  }
  return text + " (mean ± standard deviation)\n";
}

}  // namespace convoy::app
