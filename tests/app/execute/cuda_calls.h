// Counts a test's calls of the CUDA runtime.
#pragma once

#include <memory>
#include <string>

namespace convoy::test {

// Counts the calls of all threads of this process while the object lives. Only one may live at a
// time.
class CudaCalls {
 public:
  // Throws std::runtime_error if nothing can be counted, as in builds without CUDA.
  CudaCalls();
  ~CudaCalls();
  CudaCalls(const CudaCalls&) = delete;
  CudaCalls& operator=(const CudaCalls&) = delete;

  int named(const std::string& part) const;  // calls whose name contains it
  std::string text() const;

 private:
  struct Counter;
  std::unique_ptr<Counter> counter_;
};

}  // namespace convoy::test
