// `convoy bench gemm`: every rung of the GEMM ladder on the shapes that CNNs multiply, checked and timed beside
// cuBLAS.
#pragma once

#include <CLI/CLI.hpp>

namespace convoy::app {

void add_bench_gemm(CLI::App& bench);

}  // namespace convoy::app
