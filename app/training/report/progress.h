// Prints the progress of a run. On a terminal it redraws one line. Otherwise (files, pipes, logs of
// Slurm) it prints a new line after every few steps:
//   epoch 3/15  step 1234/7800  loss 1.2345  rate 0.098  812 images/s  left 3:25
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

namespace convoy::app {

struct Terminal {
  bool interactive = false;  // whether the output is a terminal
  int columns = 80;
};

// Returns the terminal of standard output. mpirun gives its ranks a terminal even if its own output
// goes to a file. So for a rank that mpirun started, the standard output of mpirun decides. A rank
// on another host than mpirun is never interactive.
Terminal standard_output_terminal();
// Returns standard_output_terminal() if `output` is std::cout, else no terminal.
Terminal terminal_of(const std::ostream& output);

// Returns a duration as text, for example "0:42", "1:02:03" or "2d 03:04:05".
std::string format_duration(std::chrono::seconds duration);

struct ProgressOptions {
  Terminal terminal{};
  std::int64_t log_every = 10;  // the number of steps per line if the output is no terminal
  std::int64_t total_steps = 1, steps_per_epoch = 1;
};

struct ProgressStep {
  // The number of finished steps of the whole run.
  std::int64_t step = 0;
  double loss = 0, learning_rate = 0, images_per_second = 0;
};

class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  // `out` is null on ranks that print nothing. Tests replace the clock by `now`.
  Progress(std::ostream* out, const ProgressOptions& options,
           std::function<Clock::time_point()> now = Clock::now);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(const ProgressStep& step);
  // Prints a line that stays, such as the result of a test.
  void message(const std::string& line);
  void finish();  // moves the cursor to a new line

 private:
  std::string line_of(const ProgressStep& step, Clock::time_point now) const;
  void draw(const std::string& line);

  std::ostream* out_;
  ProgressOptions options_;
  std::function<Clock::time_point()> now_;
  // The time left is estimated from the steps after this one, because the first step is slow.
  std::int64_t timed_from_step_ = -1;
  Clock::time_point timed_from_{}, drawn_at_{};
  std::string drawn_;  // the text that the terminal shows in the line
};

}  // namespace convoy::app
