#include "app/training/report/progress.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <utility>

namespace convoy::app {
namespace {

// The time between redraws of the line. Ten redraws per second cost next to nothing.
constexpr auto kRedrawEvery = std::chrono::milliseconds(100);

Terminal terminal_at(int descriptor) {
  winsize size{};
  Terminal terminal{::isatty(descriptor) == 1, 80};
  if (terminal.interactive && ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    terminal.columns = size.ws_col;
  }
  return terminal;
}

}  // namespace

Terminal standard_output_terminal() {
  const Terminal own = terminal_at(STDOUT_FILENO);
  if (!own.interactive || std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) return own;
  const std::string launcher = fmt::format("/proc/{}/fd/1", ::getppid());
  const int descriptor = ::open(launcher.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) return {};
  const Terminal terminal = terminal_at(descriptor);
  ::close(descriptor);
  return terminal;
}

Terminal terminal_of(const std::ostream& output) {
  return &output == &std::cout ? standard_output_terminal() : Terminal{};
}

std::string format_duration(std::chrono::seconds duration) {
  const auto seconds = duration.count();
  const auto days = seconds / 86400, hours = seconds / 3600 % 24, minutes = seconds / 60 % 60;
  if (days > 0) return fmt::format("{}d {:02}:{:02}:{:02}", days, hours, minutes, seconds % 60);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, seconds % 60);
  return fmt::format("{}:{:02}", minutes, seconds % 60);
}

Progress::Progress(std::ostream* out, const ProgressOptions& options, std::function<Clock::time_point()> now)
    : out_(out), options_(options), now_(std::move(now)) {}

std::string Progress::line_of(const ProgressStep& step, Clock::time_point now) const {
  const auto epochs = (options_.total_steps + options_.steps_per_epoch - 1) / options_.steps_per_epoch;
  const auto epoch = (step.step + options_.steps_per_epoch - 1) / options_.steps_per_epoch;
  std::string line = fmt::format("epoch {}/{}  step {}/{}  loss {:.4f}  rate {:.4g}  {:.{}f} images/s", epoch,
                                 epochs, step.step, options_.total_steps, step.loss, step.learning_rate,
                                 step.images_per_second, step.images_per_second < 100 ? 1 : 0);
  const auto timed = step.step - timed_from_step_;
  if (timed_from_step_ >= 0 && timed > 0) {
    const std::chrono::duration<double> per_step = (now - timed_from_) / static_cast<double>(timed);
    const auto left = per_step * static_cast<double>(options_.total_steps - step.step);
    line += "  left " + format_duration(std::chrono::round<std::chrono::seconds>(left));
  }
  return line;
}

void Progress::draw(const std::string& line) {
  // Shorten the line to the terminal's width, since a wrapped line could not be overwritten.
  drawn_ = line.substr(0, static_cast<std::size_t>(std::max(options_.terminal.columns - 1, 1)));
  *out_ << '\r' << drawn_ << "\x1b[K" << std::flush;
}

void Progress::step(const ProgressStep& step) {
  if (out_ == nullptr) return;
  const auto now = now_();
  const bool last = step.step >= options_.total_steps;
  if (options_.terminal.interactive) {
    if (last || drawn_.empty() || now - drawn_at_ >= kRedrawEvery) {
      draw(line_of(step, now));
      drawn_at_ = now;
    }
  } else if (last || step.step % options_.log_every == 0) {
    *out_ << line_of(step, now) << '\n' << std::flush;
  }
  if (timed_from_step_ < 0) {
    timed_from_step_ = step.step;
    timed_from_ = now;
  }
}

void Progress::message(const std::string& line) {
  if (out_ == nullptr) return;
  if (drawn_.empty()) {
    *out_ << line << '\n' << std::flush;
    return;
  }
  const std::string shown = drawn_;
  *out_ << '\r' << line << "\x1b[K\n";
  draw(shown);
}

void Progress::finish() {
  if (out_ != nullptr && !drawn_.empty()) *out_ << '\n' << std::flush;
  drawn_.clear();
}

}  // namespace convoy::app
