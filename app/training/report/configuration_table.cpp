#include "app/training/report/configuration_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "comm/placement/rank_placement.h"

namespace convoy::app {
namespace {

// If there are more ranks than this, similar ranks share a row of the table.
constexpr std::size_t kJoinMoreThan = 16;

// Returns the number of columns of a UTF-8 text: one per character, not one per byte.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width) {
  const std::size_t used = width_of(text);
  return text + std::string(width > used ? width - used : 0, ' ');
}

// Breaks a text at spaces into lines of at most `width` characters. A word longer than `width` gets
// a longer line.
std::vector<std::string> wrap(const std::string& text, std::size_t width) {
  std::vector<std::string> lines{""};
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!lines.back().empty() && width_of(lines.back()) + 1 + width_of(word) > width) lines.emplace_back();
    lines.back() += lines.back().empty() ? word : " " + word;
    begin = end + 1;
  }
  return lines;
}

bool alike(const RankPlace& a, const RankPlace& b) {
  return a.host == b.host && a.device == b.device && a.cores.size() == b.cores.size();
}

std::string optimizer_row(const TrainOptions& o) {
  using kernels::OptimizerKind;
  std::string text = name_of(o.optimizer);
  if (o.optimizer == OptimizerKind::adamw)
    text += fmt::format(", betas {} and {}, epsilon {}", o.beta1, o.beta2, o.epsilon);
  else
    text += fmt::format(", {}momentum {}", o.nesterov ? "Nesterov " : "", o.momentum);
  if (o.optimizer == OptimizerKind::lars)
    text += fmt::format(", trust coefficient {}, epsilon {}", o.trust_coefficient, o.epsilon);
  text += fmt::format(", weight decay {}", o.weight_decay);
  if (o.clip_gradient_norm > 0) text += fmt::format(", gradient norm at most {}", o.clip_gradient_norm);
  return text;
}

std::string curve(const TrainOptions& o, const LearningRateSchedule& schedule) {
  switch (schedule.kind) {
    case ScheduleKind::constant:
      return "constant";
    case ScheduleKind::step:
      return fmt::format("times {} after steps {}", schedule.gamma, fmt::join(schedule.milestones, ", "));
    case ScheduleKind::cosine:
      return fmt::format("cosine to {}", schedule.final_learning_rate);
    case ScheduleKind::polynomial:
      return fmt::format("polynomial of power {} to {}", schedule.power, schedule.final_learning_rate);
    case ScheduleKind::one_cycle:
      return fmt::format("one-cycle ({}) with its peak after {:.4g} % of the steps",
                         name_of(o.one_cycle_anneal), 100 * schedule.rise);
  }
  return name_of(o.schedule);
}

std::string learning_rate_row(const TrainOptions& o, std::int64_t steps_per_epoch) {
  const LearningRateSchedule schedule = make_schedule(o, steps_per_epoch);
  std::string text = fmt::format("{:.6g}", schedule.learning_rate);
  if (o.scale_learning_rate != RateScaling::none)
    text += fmt::format(" ({} for a batch of {}, {} scaling)", o.learning_rate, o.base_batch,
                        name_of(o.scale_learning_rate));
  text += ", " + curve(o, schedule);
  if (schedule.warmup_steps > 0) text += fmt::format(", {} steps of warm-up", schedule.warmup_steps);
  return text;
}

// Returns an interval as text: "every epoch" for 1, "every 5 epochs" for 5, or "at the end" for 0.
std::string every(std::int64_t count, const char* unit) {
  if (count == 0) return "at the end";
  return count == 1 ? fmt::format("every {}", unit) : fmt::format("every {} {}s", count, unit);
}

}  // namespace

std::string with_thousands(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t first_digit = number < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first_digit + 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1023.995 && unit + 1 < std::size(kUnits); value /= 1024) ++unit;
  return fmt::format("{:.2f} {}", value, kUnits[unit]);
}

void ConfigurationTable::section(std::string title) { sections_.push_back({std::move(title), {}}); }

void ConfigurationTable::row(std::string name, std::string value) {
  if (sections_.empty()) throw std::invalid_argument("a row of a configuration table needs a section");
  sections_.back().rows.emplace_back(std::move(name), std::move(value));
}

void ConfigurationTable::ranks(const std::vector<RankPlace>& places) {
  const bool join = places.size() > kJoinMoreThan;
  for (std::size_t begin = 0; begin < places.size();) {
    std::size_t end = begin + 1;
    while (join && end < places.size() && alike(places[begin], places[end])) ++end;
    const auto& place = places[begin];
    if (end - begin > 1) {
      row(fmt::format("ranks {}-{}", begin, end - 1),
          fmt::format("{}, {}, {} cores each", place.host, place.device, place.cores.size()));
    } else {
      row(fmt::format("rank {}", begin),
          fmt::format("{}, {}, cores {}", place.host, place.device, comm::format_cores(place.cores)));
    }
    begin = end;
  }
}

std::string ConfigurationTable::render(int columns) const {
  std::size_t name_width = 0;
  for (const auto& section : sections_) {
    for (const auto& [name, value] : section.rows) name_width = std::max(name_width, width_of(name));
  }
  const std::size_t width = static_cast<std::size_t>(std::max(columns, 40));
  const std::size_t indent = name_width + 4;  // two spaces before the name and two after it
  const std::size_t value_width = width > indent + 20 ? width - indent : 20;
  std::string text;
  for (const auto& section : sections_) {
    text += section.title + " ";
    for (std::size_t i = width_of(section.title) + 1; i < width; ++i) text += "─";
    text += "\n";
    for (const auto& [name, value] : section.rows) {
      std::string before = "  " + padded(name, name_width) + "  ";
      for (const auto& line : wrap(value, value_width)) {
        text += before + line + "\n";
        before = std::string(indent, ' ');
      }
    }
  }
  return text;
}

std::vector<std::pair<std::string, std::string>> training_rows(const TrainOptions& o,
                                                               std::int64_t steps_per_epoch) {
  const std::string checkpoints = o.checkpoint_every_steps > 0 ? every(o.checkpoint_every_steps, "step")
                                                               : every(o.checkpoint_every_epochs, "epoch");
  return {
      {"optimizer", optimizer_row(o)},
      {"learning rate", learning_rate_row(o, steps_per_epoch)},
      {"parametrisation", o.parametrisation == Parametrisation::mup
                              ? fmt::format("mup, relative to width {}", o.base_width)
                              : "standard"},
      {"loss", o.label_smoothing > 0 ? fmt::format("cross-entropy, label smoothing {}", o.label_smoothing)
                                     : "cross-entropy"},
      {"moving average", o.ema > 0 ? fmt::format("decay {} a step; best is chosen by it", o.ema) : "none"},
      {"tests", every(o.eval_every, "epoch")},
      {"checkpoints",
       fmt::format("{}; the newest {} and the best are kept", checkpoints, o.keep_checkpoints)}};
}

namespace {

std::string sliced_row(const MemoryFit& fit) {
  if (fit.slices == 1) return "nothing";
  return fmt::format("{} slices of the batch: {}", fit.slices, fmt::join(fit.sliced, ", "));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> memory_rows(const MemoryFit& fit) {
  if (!fit.fitted) return {};
  int count = 0;
  std::vector<std::string> repeated;
  for (const auto& [name, times] : fit.repeated) {
    repeated.push_back(fmt::format("{} {}", times, name));
    count += times;
  }
  const auto bytes = [](std::int64_t of) { return format_bytes(static_cast<std::uint64_t>(of)); };
  return {{"kept for backward", fmt::format("{} of {}", bytes(fit.kept_bytes), bytes(fit.all_kept_bytes))},
          {"recomputed", count == 0 ? "nothing"
                                    : fmt::format("{} operations in backward ({} in forward): {}", count,
                                                  fit.forward_operations, fmt::join(repeated, ", "))},
          {"in slices", sliced_row(fit)},
          {"in host memory", fit.copied == 0
                                 ? fmt::format("nothing of at most {}", bytes(fit.host_limit))
                                 : fmt::format("{} of at most {}: {} tensors between forward and backward",
                                               bytes(fit.host_bytes), bytes(fit.host_limit), fit.copied)},
          {"expected time", fmt::format("{:.1f} % more than without the limit",
                                        100 * fit.more_ms / std::max(fit.step_ms, 1e-9))}};
}

}  // namespace convoy::app
