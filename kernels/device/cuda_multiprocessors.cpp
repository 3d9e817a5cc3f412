#include <fmt/format.h>

#include <mutex>

#include "kernels/device/cuda_driver.h"
#include "kernels/device/multiprocessors.h"

namespace convoy::kernels {
namespace {

// A green context must not be used by two threads at the same time.
std::mutex& driver_lock() {
  static std::mutex lock;
  return lock;
}

template <typename Function, typename... Arguments>
void call(const char* name, Arguments... arguments) {
  check_driver(driver_function<Function>(name, 12050)(arguments...), name);
}

MultiprocessorPart make_part(CUdevResource multiprocessors, int device) {
  CUdevResourceDesc description = nullptr;
  call<PFN_cuDevResourceGenerateDesc_v12040>("cuDevResourceGenerateDesc", &description, &multiprocessors, 1u);
  CUgreenCtx context = nullptr;
  call<PFN_cuGreenCtxCreate_v12040>("cuGreenCtxCreate", &context, description, CUdevice(device),
                                    unsigned(CU_GREEN_CTX_DEFAULT_STREAM));
  return {context, int(multiprocessors.sm.smCount)};
}

}  // namespace

void MultiprocessorPart::Destroy::operator()(CUgreenCtx_st* context) const {
  const std::scoped_lock lock(driver_lock());
  driver_function<PFN_cuGreenCtxDestroy_v12040>("cuGreenCtxDestroy", 12050)(context);
}

CUstream_st* MultiprocessorPart::make_stream(int priority) const {
  const std::scoped_lock lock(driver_lock());
  CUstream stream = nullptr;
  call<PFN_cuGreenCtxStreamCreate_v12050>("cuGreenCtxStreamCreate", &stream, context_.get(),
                                          unsigned(CU_STREAM_NON_BLOCKING), priority);
  return stream;
}

DividedMultiprocessors divide_multiprocessors(int first) {
  int device = 0;
  CONVOY_CUDA(cudaGetDevice(&device));
  CONVOY_CUDA(cudaFree(nullptr));  // makes the GPU's own context, which green contexts need
  CUdevResource all{}, part{}, rest{};
  call<PFN_cuDeviceGetDevResource_v12040>("cuDeviceGetDevResource", CUdevice(device), &all,
                                          CU_DEV_RESOURCE_TYPE_SM);
  const int count = int(all.sm.smCount), least = int(all.sm.minSmPartitionSize);
  const int step = int(all.sm.smCoscheduledAlignment);
  if (first < least || first > count - least || first % step != 0)
    throw std::runtime_error(
        fmt::format("multiprocessors: found {}, expected a multiple of {} from {} to {}, as the GPU has {}",
                    first, step, least, (count - least) / step * step, count));
  unsigned groups = 1;
  call<PFN_cuDevSmResourceSplitByCount_v12040>("cuDevSmResourceSplitByCount", &part, &groups, &all, &rest, 0u,
                                               unsigned(first));
  if (groups != 1 || int(part.sm.smCount) != first || rest.sm.smCount == 0)
    throw std::runtime_error(fmt::format("multiprocessors: found {}, but the driver separates {} of {}",
                                         first, part.sm.smCount, count));
  return {make_part(part, device), make_part(rest, device)};
}

}  // namespace convoy::kernels
