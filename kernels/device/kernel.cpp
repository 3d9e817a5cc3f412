#include "kernels/device/kernel.h"

#include <fmt/format.h>

#include <stdexcept>

namespace convoy::kernels {

const char* name_of(Backend backend) {
  switch (backend) {
    case Backend::reference:
      return "reference";
    case Backend::cpu:
      return "cpu";
    case Backend::cuda:
      return "cuda";
  }
  return "unknown";
}

void throw_no_backend(Backend backend) {
  if (backend == Backend::cuda) throw std::runtime_error("this build has no CUDA backend");
  throw std::runtime_error(fmt::format("this operation has no {} backend", name_of(backend)));
}

}  // namespace convoy::kernels
