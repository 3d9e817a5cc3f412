// `convoy info --memory`: tells how much longer a training step takes if it has less memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/compile/step_options.h"
#include "app/model/network.h"

namespace convoy::app {

struct MemoryCurvePoint {
  std::int64_t bytes = 0;       // bytes of device memory that the step reserves
  std::int64_t kept_bytes = 0;  // bytes of tensors that forward keeps for backward
  int recomputed = 0;           // number of forward operations that backward repeats
  // The layers with the largest tensors process the batch in this many slices, one after another.
  int slices = 1;
  std::int64_t host_bytes = 0;  // bytes of tensors in host memory between forward and backward
  double ms = 0;                // expected milliseconds of the step's operations
};

struct MemoryCurve {
  // The first point is the step without a limit, the last is the step with the least memory.
  std::vector<MemoryCurvePoint> points;
  // The operation that needs the most memory while it runs. It decides the least possible memory.
  std::string least_at;
};

// Returns the memory curve: plans of the training step of one rank for a series of memory limits,
// from the memory that the step takes without a limit down to the least that is possible.
MemoryCurve memory_curve(const Network& network, const StepOptions& options);

// Prints the curve, and draws it into an SVG file unless `plot` is empty.
void print_memory(const Network& network, const StepOptions& options, bool json, const std::string& plot);

// Returns an SVG drawing of the expected time over the bytes of memory. Both axes are relative to
// the step without a limit.
std::string draw_memory_curve(const MemoryCurve& curve, const std::string& title);

}  // namespace convoy::app
