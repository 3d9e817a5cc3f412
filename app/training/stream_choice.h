// Chooses the number of GPU streams on which the members of a run train (trainings that run
// together). Members that share a compiled step form a group, called a shape (member_keys.h).
// Shapes on different streams run at the same time; shapes on the same stream run one after the
// other. The choice is made by timing steps of the run. One stream is among the candidates.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace convoy::app {

class StreamChoice {
 public:
  // Tries `shapes` streams, one per shape, and then all powers of two below `shapes`.
  explicit StreamChoice(int shapes);

  // Returns the number of streams for the next steps.
  int streams() const { return tries_[at_].streams; }
  // Takes the milliseconds of the step that finished last. Returns true if streams() may have
  // changed, so that the caller must distribute the sessions over the streams again.
  bool finished(double step_ms);
  bool done() const { return done_; }
  // Returns one line about the choice, once it is made.
  std::string text() const;

 private:
  struct Try {
    int streams;
    double step_ms = std::numeric_limits<double>::infinity();  // mean time of a step in the faster round
  };

  const int shapes_;
  std::vector<Try> tries_;
  std::size_t at_ = 0;
  int round_ = 0;
  std::int64_t steps_ = 0;  // steps finished in this round, also those that are not measured
  double sum_ms_ = 0;
  bool done_ = false;
};

}  // namespace convoy::app
