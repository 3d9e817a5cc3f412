// Times cuDNN through its graph interface. The library is loaded at run time.
#include "kernels/conv2d/bench/cudnn.h"

#if __has_include(<cudnn_graph.h>)
#include <cudnn_graph.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace convoy::kernels::conv {
namespace {

// The functions of cuDNN, which is loaded at run time. They are null if it is missing.
struct Library {
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
  decltype(&cudnnGetVersion) version = nullptr;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&cudnnBackendSetAttribute) set = nullptr;
  decltype(&cudnnBackendGetAttribute) get = nullptr;
  decltype(&cudnnBackendFinalize) finalize = nullptr;
  decltype(&cudnnBackendExecute) execute = nullptr;
  cudnnHandle_t handle = nullptr;

  Library() {
    void* loaded = nullptr;
    for (const char* name : {"libcudnn.so.9", "libcudnn_graph.so.9", "libcudnn.so"})
      if (loaded == nullptr) loaded = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    if (loaded == nullptr) return;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(loaded, name));
      return function != nullptr;
    };
    const bool whole = find(create, "cudnnCreate") && find(set_stream, "cudnnSetStream") &&
                       find(version, "cudnnGetVersion") &&
                       find(create_descriptor, "cudnnBackendCreateDescriptor") &&
                       find(destroy_descriptor, "cudnnBackendDestroyDescriptor") &&
                       find(set, "cudnnBackendSetAttribute") && find(get, "cudnnBackendGetAttribute") &&
                       find(finalize, "cudnnBackendFinalize") && find(execute, "cudnnBackendExecute");
    if (!whole || create(&handle) != CUDNN_STATUS_SUCCESS) handle = nullptr;
  }
};
const Library& library() {
  static const Library loaded;
  return loaded;
}

void check(cudnnStatus_t status, const char* what) {
  if (status != CUDNN_STATUS_SUCCESS)
    throw std::runtime_error(fmt::format("cuDNN: {} failed with {}", what, int(status)));
}

// Owns one of cuDNN's descriptors.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    cudnnBackendDescriptor_t made = nullptr;
    check(library().create_descriptor(type, &made), "creating a descriptor");
    held_ = std::shared_ptr<void>(made, [](void* one) { library().destroy_descriptor(one); });
  }
  template <typename T>
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  const std::vector<T>& values) {
    check(library().set(get(), name, type, std::int64_t(values.size()), values.data()),
          "setting an attribute");
    return *this;
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& other) {
    return set<void*>(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, {other.get()});
  }
  Descriptor& finalize() {
    check(library().finalize(get()), "finalizing a descriptor");
    return *this;
  }
  cudnnBackendDescriptor_t get() const { return held_.get(); }

 private:
  std::shared_ptr<void> held_;
};

constexpr std::int64_t kImages = 'i', kOther = 'o', kOut = 'r';

Descriptor tensor(const Task& task, std::int64_t id, std::int64_t n, std::int64_t c, std::int64_t h,
                  std::int64_t w) {
  const auto type = task.type() == DType::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, {type})
      .set<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, {n, c, h, w})
      .set<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, {h * w * c, 1, w * c, c})
      .set<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, {id})
      .set<std::int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, {16});
  return made.finalize();
}

Descriptor convolution(const Geometry& g) {
  const auto pair = [](const int(&values)[2]) { return std::vector<std::int64_t>{values[0], values[1]}; };
  Descriptor made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  made.set<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, {CUDNN_DATA_FLOAT})
      .set<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
                                   {CUDNN_CROSS_CORRELATION})
      .set<std::int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, {2})
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, pair(g.dilation))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, pair(g.stride))
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, pair(g.padding))
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, pair(g.padding));
  return made.finalize();
}

Descriptor operation(const Task& task) {
  const Geometry& g = task.geometry;
  const auto x = [&](std::int64_t id) { return tensor(task, id, g.n, g.c, g.h, g.w); };
  const auto y = [&](std::int64_t id) { return tensor(task, id, g.n, g.k, g.p, g.q); };
  const auto filters = [&](std::int64_t id) { return tensor(task, id, g.k, g.c / g.groups, g.r, g.s); };
  const Descriptor shape = convolution(g);
  const std::vector<float> one{1}, zero{0};
  if (task.direction == Direction::forward)
    return Descriptor(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x(kImages))
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, filters(kOther))
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y(kOut))
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, shape)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, one)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, zero)
        .finalize();
  if (task.direction == Direction::backward_data)
    return Descriptor(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, y(kImages))
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, filters(kOther))
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, x(kOut))
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, shape)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_TYPE_FLOAT, one)
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_TYPE_FLOAT, zero)
        .finalize();
  return Descriptor(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR)
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, x(kImages))
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, y(kOther))
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, filters(kOut))
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, shape)
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_TYPE_FLOAT, one)
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, CUDNN_TYPE_FLOAT, zero)
      .finalize();
}

std::vector<Descriptor> engine_configs(const Descriptor& graph, int most) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, {CUDNN_HEUR_MODE_A})
      .finalize();
  std::vector<Descriptor> configs;
  std::vector<void*> pointers;
  for (int i = 0; i < most; ++i)
    pointers.push_back(configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
  std::int64_t count = 0;
  check(library().get(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, most,
                      &count, pointers.data()),
        "asking the heuristics");
  configs.resize(std::size_t(std::min<std::int64_t>(count, most)), configs.front());
  return configs;
}

Bench::Binder binder_of(const Task& task, const Descriptor& plan, const Descriptor& graph) {
  return [=](const Buffers& b) -> Launch {
    const bool weights = task.direction == Direction::backward_weights;
    Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
                    {const_cast<void*>(b.images), const_cast<void*>(weights ? b.dy : b.weights), b.out})
        .set<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, {kImages, kOther, kOut})
        .set<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, {b.workspace})
        .finalize();
    return [plan, graph, pack](Stream stream) {
      check(library().set_stream(library().handle, stream.get()), "setting the stream");
      check(library().execute(library().handle, plan.get(), pack.get()), "a convolution");
    };
  };
}

}  // namespace

std::string cudnn_version() {
  if (library().handle == nullptr) return {};
  const std::size_t version = library().version();
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

CudnnPlans cudnn_plans(const Task& task, int most) {
  CudnnPlans plans;
  if (library().handle == nullptr) return plans;
  const Descriptor op = operation(task);
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, op)
      .set<cudnnHandle_t>(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, {library().handle})
      .finalize();
  for (const Descriptor& config : engine_configs(graph, most)) {
    // cuDNN's heuristics may name an engine that then refuses the problem, so try the next one.
    try {
      Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan.set<cudnnHandle_t>(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, {library().handle})
          .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config)
          .finalize();
      std::int64_t bytes = 0, count = 0;
      check(library().get(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
                          &bytes),
            "asking for the workspace");
      plans.workspace_bytes = std::max(plans.workspace_bytes, std::size_t(bytes));
      plans.binders.push_back(binder_of(task, plan, graph));
    } catch (const std::runtime_error&) {
    }
  }
  return plans;
}

}  // namespace convoy::kernels::conv

#else

namespace convoy::kernels::conv {

std::string cudnn_version() { return {}; }
CudnnPlans cudnn_plans(const Task&, int) { return {}; }

}  // namespace convoy::kernels::conv

#endif
