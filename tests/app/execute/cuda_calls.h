// Counts the calls of the CUDA runtime, so that a test can check how many a step makes.
#pragma once

#include <memory>
#include <string>

namespace convoy::test {

// Counts the calls of all threads of this process while the object exists. Only one object may
// exist at a time.
class CudaCalls {
 public:
  // Throws std::runtime_error if calls cannot be counted, as in builds without CUDA.
  CudaCalls();
  ~CudaCalls();
  CudaCalls(const CudaCalls&) = delete;
  CudaCalls& operator=(const CudaCalls&) = delete;

  // Returns the number of calls whose name contains `part`.
  int named(const std::string& part) const;
  std::string text() const;

 private:
  struct Counter;
  std::unique_ptr<Counter> counter_;
};

}  // namespace convoy::test
