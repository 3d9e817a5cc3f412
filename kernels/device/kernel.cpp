#include "kernels/device/kernel.h"

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

}  // namespace convoy::kernels
