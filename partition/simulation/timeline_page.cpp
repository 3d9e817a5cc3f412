#include "partition/simulation/timeline_page.h"

#include <algorithm>

namespace convoy::partition {
namespace {

constexpr double kWidth = 1400, kLeft = 80;

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  return out;
}

TimelinePage::TimelinePage(Nanoseconds end)
    : end_(end), scale_(kWidth / std::max(1.0, static_cast<double>(end))) {}

double TimelinePage::x(Nanoseconds time) const { return kLeft + static_cast<double>(time) * scale_; }

void TimelinePage::begin(const std::string& title, const ReportRows& rows) {
  put("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{0}</title><style>"
      "body{{font:14px "
      "system-ui,sans-serif;margin:24px;color:#222}}table{{border-collapse:collapse;margin-bottom:20px}}"
      "td,th{{padding:2px 14px 2px "
      "0;text-align:left}}td.n{{text-align:right;font-variant-numeric:tabular-nums}}"
      "svg text{{font:11px system-ui,sans-serif;fill:#444}}</style><h1>{0}</h1><table>",
      html_escaped(title));
  for (const auto& [name, value] : rows)
    put("<tr><th>{}<td class=\"n\">{}", html_escaped(name), html_escaped(value));
  put("</table>");
}

void TimelinePage::legend_entry(const char* color, const char* what) {
  put("<span style=\"display:inline-block;margin-right:1em\"><svg width=\"14\" height=\"12\">"
      "<rect width=\"14\" height=\"12\" fill=\"{}\"/></svg> {}</span> ",
      color, what);
}

void TimelinePage::begin_timeline(double height) {
  put("<svg viewBox=\"0 0 {} {}\" width=\"100%\" role=\"img\" aria-label=\"timeline\">", kWidth + kLeft + 10,
      height + 24);
}

void TimelinePage::lane(double top, const std::string& label) {
  put("<text x=\"0\" y=\"{}\">{}</text>", top + 17, html_escaped(label));
  put("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#f1f1f4\"/>", kLeft, top, kWidth, kLane);
}

bool TimelinePage::can_be_named(Nanoseconds time) const {
  constexpr double kNamed = 4;
  return static_cast<double>(time) * scale_ >= kNamed;
}

void TimelinePage::band(double top, double height, std::string_view color, Nanoseconds begin, Nanoseconds end,
                        const std::string& title) {
  end_thin_bands();
  put("<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"><title>{} {:.1f} µs at "
      "{:.1f} µs</title></rect>",
      x(begin), top, x(end) - x(begin), height, color, html_escaped(title),
      static_cast<double>(end - begin) / 1e3, static_cast<double>(begin) / 1e3);
}

void TimelinePage::thin_band(double top, double height, std::string_view color, Nanoseconds begin,
                             Nanoseconds end) {
  constexpr double kVisible = 0.7;
  const bool same = thin_.from >= 0 && thin_.top == top && thin_.color == color;
  if (!same || x(begin) - thin_.until > kVisible) {
    end_thin_bands();
    thin_ = {x(begin), x(end), top, height, color};
  }
  thin_.until = std::max(thin_.until, x(end));
}

void TimelinePage::end_thin_bands() {
  if (thin_.from >= 0)
    put("<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"/>", thin_.from, thin_.top,
        std::max(0.3, thin_.until - thin_.from), thin_.height, thin_.color);
  thin_.from = -1;
}

void TimelinePage::memory(double top, const std::vector<MemorySample>& curve, Bytes peak, Bytes limit) {
  const double full =
      static_cast<double>(std::max<Bytes>(1, limit == kUnlimited ? peak : std::max(limit, peak)));
  const auto y = [&](Bytes bytes) { return top + kMemoryLane * (1 - static_cast<double>(bytes) / full); };
  put("<path fill=\"#cfe0ee\" stroke=\"none\" d=\"M{:.1f} {:.1f}", kLeft, top + kMemoryLane);
  // For each column of pixels, draw the highest sample.
  for (std::size_t i = 0; i < curve.size();) {
    const double column = x(curve[i].time);
    Bytes highest = curve[i].bytes;
    std::size_t next = i + 1;
    while (next < curve.size() && x(curve[next].time) - column < 1)
      highest = std::max(highest, curve[next++].bytes);
    const double end = next < curve.size() ? x(curve[next].time) : kLeft + kWidth;
    put("L{:.1f} {:.1f}L{:.1f} {:.1f}", column, y(highest), end, y(highest));
    i = next;
  }
  put("L{:.1f} {:.1f}Z\"/>", kLeft + kWidth, top + kMemoryLane);
  if (limit != kUnlimited)
    put("<path stroke=\"#b03030\" d=\"M{} {:.1f}H{}\"/>", kLeft, y(limit), kLeft + kWidth);
  put("<text x=\"0\" y=\"{}\">{:.0f} MiB</text>", top + kMemoryLane - 2,
      static_cast<double>(peak) / (1 << 20));
}

std::string TimelinePage::end_timeline(double height) {
  constexpr int kTicks = 10;
  const double end_us = static_cast<double>(end_) / 1e3;
  const int digits = end_us < 100 ? 2 : 0;
  for (int tick = 0; tick <= kTicks; ++tick)
    put("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"{}\">{:.{}f} µs</text>", kLeft + kWidth * tick / kTicks,
        height + 14, tick == kTicks ? "end" : "middle", end_us * tick / kTicks, digits);
  put("</svg></html>\n");
  return fmt::to_string(out_);
}

}  // namespace convoy::partition
