// `convoy info --memory`: what a training step takes within less memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/compile/step_options.h"
#include "app/model/network.h"

namespace convoy::app {

struct MemoryCurvePoint {
  std::int64_t bytes = 0;       // of the arena
  std::int64_t kept_bytes = 0;  // that forward leaves for backward
  int recomputed = 0;           // operations that run again
  std::int64_t host_bytes = 0;  // that wait in host memory
  double ms = 0;                // expected time of the step's operations
};

struct MemoryCurve {
  std::vector<MemoryCurvePoint> points;  // from the step without a limit to the least possible
  std::string least_at;                  // the operation that needs the least
};

// Plans the training step of one rank for limits from what it takes without one down to the least.
MemoryCurve memory_curve(const Network& network, const StepOptions& options);

// Prints the curve, and draws it into an SVG file unless `plot` is empty.
void print_memory(const Network& network, const StepOptions& options, bool json, const std::string& plot);

// Returns the drawing: expected time over bytes, both relative to the step without a limit.
std::string draw_memory_curve(const MemoryCurve& curve, const std::string& title);

}  // namespace convoy::app
