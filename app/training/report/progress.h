// Prints the progress of a run: on a terminal one line that is redrawn, elsewhere (files, pipes,
// logs of Slurm) a new line after every few steps:
//   epoch 3/15  step 1234/7800  loss 1.2345  rate 0.098  812 images/s  left 3:25
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

namespace convoy::app {

struct Terminal {
  bool interactive = false;  // somebody watches it
  int columns = 80;
};

// Returns the terminal that standard output goes to. mpirun gives its ranks a terminal of their own
// even when it writes to a file, so its own standard output decides. A rank on another host than
// mpirun is never interactive.
Terminal standard_output_terminal();

// "0:42", "1:02:03", "2d 03:04:05".
std::string format_duration(std::chrono::seconds duration);

struct ProgressOptions {
  Terminal terminal{};
  std::int64_t log_every = 10;  // steps between plain lines
  std::int64_t total_steps = 1, steps_per_epoch = 1;
};

struct ProgressStep {
  std::int64_t step = 0;  // finished, of the whole run
  double loss = 0, learning_rate = 0, images_per_second = 0;
};

class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  // `out` is nullptr on ranks that keep silent. `now` is for tests.
  Progress(std::ostream* out, const ProgressOptions& options,
           std::function<Clock::time_point()> now = Clock::now);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(const ProgressStep& step);
  // Prints a line that stays, such as the result of a test.
  void message(const std::string& line);
  void finish();  // leaves the cursor on a fresh line

 private:
  std::string line_of(const ProgressStep& step, Clock::time_point now) const;
  void draw(const std::string& line);

  std::ostream* out_;
  ProgressOptions options_;
  std::function<Clock::time_point()> now_;
  // The first step may take long: the time left is estimated from the later ones.
  std::int64_t timed_from_step_ = -1;
  Clock::time_point timed_from_{}, drawn_at_{};
  std::string drawn_;  // what the terminal's line shows
};

}  // namespace convoy::app
