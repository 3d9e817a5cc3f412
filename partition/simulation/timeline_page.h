// An HTML page with a table and an SVG timeline, without scripts and in a single file. Bands too
// narrow to be seen are drawn together, so that the page stays small.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "partition/simulation/simulator.h"

namespace convoy::partition {

using ReportRows = std::vector<std::pair<std::string, std::string>>;

std::string html_escaped(std::string_view text);

class TimelinePage {
 public:
  // The time axis goes from 0 to `end`.
  explicit TimelinePage(Nanoseconds end);

  void begin(const std::string& title, const ReportRows& rows);
  template <typename... Values>
  void put(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Values>(values)...);
  }
  void legend_entry(const char* color, const char* what);

  // Heights of parts of the page, in pixels.
  static constexpr double kLane = 26, kMemoryLane = 44, kGap = 16;
  void begin_timeline(double height);
  void lane(double top, const std::string& label);
  void band(double top, double height, std::string_view color, Nanoseconds begin, Nanoseconds end,
            const std::string& title);
  // Draws a band without a title. A thin band is joined with the previous one if both have the same
  // position and colour and no visible gap between them. end_thin_bands() draws the joined bands.
  void thin_band(double top, double height, std::string_view color, Nanoseconds begin, Nanoseconds end);
  void end_thin_bands();
  bool can_be_named(Nanoseconds time) const;
  void memory(double top, const std::vector<MemorySample>& curve, Bytes peak, Bytes limit);
  std::string end_timeline(double height);

 private:
  double x(Nanoseconds time) const;

  Nanoseconds end_;
  double scale_;
  struct {
    double from = -1, until = -1, top = 0, height = 0;
    std::string_view color;
  } thin_;
  fmt::memory_buffer out_;
};

}  // namespace convoy::partition
