// `convoy bench gemm`: checks and times every kernel family on the matrix products of CNNs, and
// compares them with cuBLAS.
#pragma once

#include <CLI/CLI.hpp>

namespace convoy::app {

void add_bench_gemm(CLI::App& bench);

}  // namespace convoy::app
