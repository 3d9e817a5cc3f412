// Replaces cuda_calls.cpp in builds without CUDA.
#include <stdexcept>

#include "tests/app/execute/cuda_calls.h"

namespace convoy::test {

struct CudaCalls::Counter {};

CudaCalls::CudaCalls() { throw std::runtime_error("built without CUDA"); }
CudaCalls::~CudaCalls() = default;
int CudaCalls::named(const std::string&) const { return 0; }
std::string CudaCalls::text() const { return {}; }

}  // namespace convoy::test
