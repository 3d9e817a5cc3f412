// The value of --lanes: "auto" or a number of lanes, which are sequences of instructions that a GPU
// runs at the same time (app/execute/lane_plan.h).
#pragma once

#include <string>

#include "app/compile/step_options.h"

namespace convoy::app {

struct Lanes {
  int count = kAutoLanes;

  std::string text() const;  // "auto", "3"
  // Reads a number or "auto". Throws std::invalid_argument that says what was found and expected.
  static Lanes parse(const std::string& text);
  bool operator==(const Lanes&) const = default;
};

}  // namespace convoy::app
