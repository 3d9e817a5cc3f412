// Element types and operations in NCCL's terms. CUDA builds only. Internal to comm.
#pragma once

#include <nccl.h>

#include <stdexcept>

#include "comm/reduce_op.h"
#include "kernels/device/tensor.h"

namespace convoy::comm {

inline ncclDataType_t nccl_type(kernels::DType type) {
  switch (type) {
    case kernels::DType::f32:
      return ncclFloat32;
    case kernels::DType::f64:
      return ncclFloat64;
    case kernels::DType::bf16:
      return ncclBfloat16;
    case kernels::DType::i32:
      return ncclInt32;
    case kernels::DType::u8:
      return ncclUint8;
  }
  throw std::invalid_argument("unknown element type");
}

inline ncclRedOp_t nccl_op(ReduceOp op) {
  return op == ReduceOp::sum ? ncclSum : op == ReduceOp::max ? ncclMax : ncclMin;
}

}  // namespace convoy::comm
