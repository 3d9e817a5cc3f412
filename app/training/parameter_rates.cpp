#include "app/training/parameter_rates.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "app/errors.h"

namespace convoy::app {
namespace {

struct Rule {
  std::string flag, pattern;
  float rate = 0;
  bool fits(const std::string& name) const { return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0; }
};

// Parses a --rate. The last '=' ends the pattern, since a name may contain '=' but a factor cannot.
Rule rate_rule(const std::string& text) {
  const auto equals = text.rfind('=');
  Rule rule{fmt::format("--rate {}", text), text.substr(0, equals), 0};
  const char* const end = text.data() + text.size();
  const char* const begin = equals == std::string::npos ? end : text.data() + equals + 1;
  const auto [stopped, error] = std::from_chars(begin, end, rule.rate);
  if (rule.pattern.empty() || error != std::errc() || stopped != end || !std::isfinite(rule.rate) ||
      rule.rate < 0)
    throw UsageError(
        fmt::format("--rate: found '{}', expected PATTERN=FACTOR with a factor of at least 0", text));
  return rule;
}

// Returns the rules of all --freeze and then of all --rate flags. If several rules fit a parameter,
// the last one applies.
std::vector<Rule> rules_of(const TrainOptions& options) {
  std::vector<Rule> rules;
  for (const std::string& pattern : options.freeze)
    rules.push_back({fmt::format("--freeze {}", pattern), pattern, 0});
  for (const std::string& text : options.rate) rules.push_back(rate_rule(text));
  return rules;
}

const Rule* last_fitting(const std::vector<Rule>& rules, const std::string& name) {
  const auto found = std::find_if(rules.rbegin(), rules.rend(), [&](const Rule& r) { return r.fits(name); });
  return found == rules.rend() ? nullptr : &*found;
}

void check_fits(const std::vector<Rule>& rules, const std::vector<ParameterSpec>& parameters,
                const std::string& network) {
  // A pattern may freeze a constant, whose batch norm then is frozen, but cannot train it.
  const auto fits = [](const Rule& rule, const ParameterSpec& spec) {
    return rule.fits(spec.name) && (rule.rate == 0 || !spec.constant);
  };
  for (const Rule& rule : rules)
    if (std::ranges::none_of(parameters, [&](const ParameterSpec& spec) { return fits(rule, spec); }))
      throw UsageError(fmt::format("{}: fits no parameter of {}, expected a pattern for names such as '{}'",
                                   rule.flag, network, parameters.back().name));
}

}  // namespace

void check_rates(const TrainOptions& options) { rules_of(options); }

int set_rates(Network& network, const TrainOptions& options) {
  const std::vector<Rule> rules = rules_of(options);
  check_fits(rules, network.parameters(), network.name());
  bool trains = false;
  // The number of parameters that a --freeze names but a --rate trains.
  int overridden = 0;
  for (LayerId id = 0; id < std::ssize(network.layers()); ++id) {
    const Layer& layer = network.layers()[static_cast<std::size_t>(id)];
    const bool frozen_norm = options.freeze_batch_norm && std::holds_alternative<BatchNorm>(layer.op);
    for (const ParameterSpec& spec : layer.parameters) {
      const Rule* rule = last_fitting(rules, spec.name);
      const float rate = frozen_norm ? 0 : rule != nullptr ? rule->rate : 1;
      network.parameter(id, spec.key).rate = rate;
      trains = trains || (rate > 0 && !spec.constant);
      const auto freezes = [&](const Rule& other) {
        return other.flag.starts_with("--freeze") && other.fits(spec.name);
      };
      if (rate > 0 && !spec.constant && std::ranges::any_of(rules, freezes)) ++overridden;
    }
  }
  if (!trains)
    throw UsageError(
        fmt::format("--freeze: found all parameters of {} frozen, expected some to train; --rate "
                    "PATTERN=1 trains those of a name",
                    network.name()));
  return overridden;
}

}  // namespace convoy::app
