#include "kernels/device/onednn.h"

#include <stdexcept>
#include <utility>

namespace convoy::kernels::onednn {
namespace {

using dnnl::memory;

constexpr std::size_t kAlignment = 64;

memory::format_tag plain_tag(std::size_t rank) {
  constexpr memory::format_tag kTags[] = {memory::format_tag::a, memory::format_tag::ab,
                                          memory::format_tag::abc, memory::format_tag::abcd,
                                          memory::format_tag::abcde};
  if (rank < 1 || rank > std::size(kTags)) throw std::logic_error("oneDNN tensors have one to five extents");
  return kTags[rank - 1];
}

memory::format_tag tag_of(Layout layout, std::size_t rank) {
  switch (layout) {
    case Layout::row_major:
      return plain_tag(rank);
    case Layout::channels_last:
      return rank == 4 ? memory::format_tag::nhwc : plain_tag(rank);
    case Layout::blocked16:
      return rank == 4 ? memory::format_tag::nChw16c : plain_tag(rank);
    case Layout::blocked8:
      return rank == 4 ? memory::format_tag::nChw8c : plain_tag(rank);
    case Layout::any:
    case Layout::opaque:
      break;
  }
  throw std::logic_error("a layout that has no oneDNN tag");
}

// A layout that oneDNN chose and for which the enumeration Layout has no name.
class ChosenLayout final : public OpaqueLayout {
 public:
  explicit ChosenLayout(memory::desc desc) : desc_(std::move(desc)) {}
  const memory::desc& desc() const { return desc_; }
  std::size_t bytes() const override { return desc_.get_size(); }
  void to_row_major(const void* from, float* to) const override {
    copy(desc_, const_cast<void*>(from), plain(), to);
  }
  void from_row_major(const float* from, void* to) const override {
    copy(plain(), const_cast<float*>(from), desc_, to);
  }

 private:
  memory::desc plain() const {
    const memory::dims dims = dims_of(desc_);
    return {dims, memory::data_type::f32, plain_tag(dims.size())};
  }
  static void copy(const memory::desc& from_desc, void* from, const memory::desc& to_desc, void* to) {
    memory source(from_desc, engine(), from), target(to_desc, engine(), to);
    dnnl::reorder(source, target).execute(stream(), source, target);
    dnnl::stream(stream()).wait();
  }
  memory::desc desc_;
};

// A primitive, and its arguments at their final addresses.
struct BoundStep {
  dnnl::primitive primitive;
  std::vector<memory> memories;
  std::vector<dnnl_exec_arg_t> arguments;
};

void* address(const Buffer& buffer, const Operands& operands) {
  switch (buffer.place) {
    case Buffer::Place::input:
      return operands.inputs[buffer.at];
    case Buffer::Place::output:
      return operands.outputs[buffer.at];
    case Buffer::Place::workspace:
      return static_cast<std::byte*>(operands.workspace) + buffer.at;
  }
  throw std::logic_error("unknown place of a buffer");
}

}  // namespace

const dnnl::engine& engine() {
  static const dnnl::engine instance(dnnl::engine::kind::cpu, 0);
  return instance;
}

const dnnl::stream& stream() {
  static const dnnl::stream instance(engine());
  return instance;
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

memory::data_type type_of(DType type) {
  switch (type) {
    case DType::f32:
      return memory::data_type::f32;
    case DType::bf16:
      return memory::data_type::bf16;
    case DType::i32:
      return memory::data_type::s32;
    case DType::u8:
      return memory::data_type::u8;
    case DType::f64:
      break;
  }
  throw std::invalid_argument("oneDNN has no such element type");
}

memory::dims dims_of(const Shape& shape) {
  memory::dims dims(shape.rank());
  for (int axis = 0; axis < shape.rank(); ++axis) dims[axis] = shape[axis];
  return dims;
}

memory::desc desc_of(const TensorDesc& tensor) { return desc_of(tensor, dims_of(tensor.shape)); }

memory::desc desc_of(const TensorDesc& tensor, const memory::dims& dims) {
  if (tensor.layout != Layout::opaque)
    return {dims, type_of(tensor.dtype), tag_of(tensor.layout, dims.size())};
  const auto* chosen = dynamic_cast<const ChosenLayout*>(tensor.opaque.get());
  if (chosen == nullptr) throw std::invalid_argument("an opaque layout that is not oneDNN's");
  return chosen->desc();
}

memory::desc any_desc(const TensorDesc& tensor, const memory::dims& dims) {
  return {dims, type_of(tensor.dtype), memory::format_tag::any};
}

memory::desc open_desc_of(const TensorDesc& tensor, const memory::dims& dims) {
  return tensor.layout == Layout::any ? any_desc(tensor, dims) : desc_of(tensor, dims);
}

void require_layout(TensorDesc& tensor, const memory::desc& chosen) {
  if (tensor.layout != Layout::any) return;
  const memory::dims dims = dims_of(chosen);
  for (const Layout layout :
       {Layout::row_major, Layout::channels_last, Layout::blocked16, Layout::blocked8}) {
    if (chosen != memory::desc(dims, type_of(tensor.dtype), tag_of(layout, dims.size()))) continue;
    // If oneDNN sees other extents than the tensor has (for example, separate groups), its blocked
    // layouts order the bytes differently from ours.
    if (layout != Layout::row_major && dims != dims_of(tensor.shape)) break;
    tensor.layout = layout;
    return;
  }
  tensor.layout = Layout::opaque;
  tensor.opaque = std::make_shared<ChosenLayout>(chosen);
}

void choose_image_layout(TensorDesc& tensor, const memory::desc& chosen, const TensorDesc& other) {
  require_layout(tensor, chosen);
  if (tensor.layout != Layout::opaque) return;
  if (other.layout == Layout::any || other.layout == Layout::opaque)
    throw std::logic_error("internal error: images must match others whose layout is open or opaque");
  tensor.layout = other.layout;
  tensor.opaque.reset();
}

Buffer Sequence::temporary(const memory::desc& desc) {
  const Buffer buffer{Buffer::Place::workspace, workspace_bytes_, desc};
  workspace_bytes_ += (desc.get_size() + kAlignment - 1) / kAlignment * kAlignment;
  return buffer;
}

Buffer Sequence::same_or_temporary(const Buffer& target, const memory::desc& wanted) {
  return target.desc == wanted ? target : temporary(wanted);
}

void Sequence::add(const dnnl::primitive_desc_base& primitive, Arguments arguments) {
  const memory::desc scratchpad = primitive.query_md(dnnl::query::scratchpad_md);
  if (scratchpad.get_size() > 0) arguments.emplace_back(DNNL_ARG_SCRATCHPAD, temporary(scratchpad));
  steps_.push_back({dnnl::primitive(primitive.get()), std::move(arguments)});
}

void Sequence::reorder(const Buffer& from, const Buffer& to) {
  const dnnl::reorder::primitive_desc descriptor(engine(), from.desc, engine(), to.desc, user_scratchpad());
  add(descriptor, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

Buffer Sequence::in_layout(const Buffer& buffer, const memory::desc& wanted) {
  if (buffer.desc == wanted) return buffer;
  const Buffer copy = temporary(wanted);
  reorder(buffer, copy);
  return copy;
}

void Sequence::add_writing(const dnnl::primitive_desc_base& primitive, Arguments arguments, int role,
                           const memory::desc& wanted, const Buffer& target) {
  const Buffer result = same_or_temporary(target, wanted);
  arguments.emplace_back(role, result);
  add(primitive, std::move(arguments));
  if (target.desc != wanted) reorder(result, target);
}

Kernel Sequence::kernel(std::vector<std::pair<int, int>> in_place) const {
  Kernel kernel;
  kernel.workspace_bytes = workspace_bytes_;
  kernel.in_place = std::move(in_place);
  kernel.bind = [steps = steps_](const Operands& operands) -> Launch {
    auto bound = std::make_shared<std::vector<BoundStep>>();
    for (const Step& step : steps) {
      BoundStep& target = bound->emplace_back(step.primitive);
      for (const auto& [role, buffer] : step.arguments) {
        target.memories.emplace_back(buffer.desc, engine(), address(buffer, operands));
        target.arguments.push_back({role, target.memories.back().get()});
      }
    }
    return [bound, stream = stream().get()](Stream) {
      for (const BoundStep& step : *bound)
        dnnl::error::wrap_c_api(
            dnnl_primitive_execute(step.primitive.get(), stream, static_cast<int>(step.arguments.size()),
                                   step.arguments.data()),
            "oneDNN could not execute a primitive");
    };
  };
  return kernel;
}

}  // namespace convoy::kernels::onednn
