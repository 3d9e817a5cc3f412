// Implements fuse(). A first pass over the layers plans which layers are replaced. A second pass
// builds the new network.
#include <algorithm>
#include <map>
#include <set>

#include "app/model/network.h"

namespace convoy::app {
namespace {

class Fuser {
 public:
  explicit Fuser(const Network& network)
      : network_(network), consumers_(network.layers().size()), absorbed_(network.layers().size(), false) {
    for (LayerId id = 0; id < std::ssize(network.layers()); ++id)
      for (const LayerId input : at(id).inputs) consumers_[static_cast<std::size_t>(input)].push_back(id);
    for (const LayerId output : network.outputs()) consumers_[static_cast<std::size_t>(output)].push_back(-1);
  }

  Network run() {
    for (LayerId id = 0; id < std::ssize(network_.layers()); ++id) plan(id);
    Network fused(network_.name(), network_.shape(0));
    std::map<LayerId, LayerId> new_id{{0, 0}};
    for (LayerId id = 1; id < std::ssize(network_.layers()); ++id) {
      if (absorbed_[static_cast<std::size_t>(id)]) continue;
      const auto found = replacement_.find(id);
      Layer layer = found == replacement_.end() ? at(id) : found->second;
      for (LayerId& input : layer.inputs) input = new_id.at(input);
      new_id[id] = fused.append(std::move(layer));
    }
    std::vector<LayerId> outputs = network_.outputs();
    for (LayerId& output : outputs) output = new_id.at(output);
    fused.set_outputs(std::move(outputs));
    return fused;
  }

 private:
  const Layer& at(LayerId id) const { return network_.layers()[static_cast<std::size_t>(id)]; }

  // Returns the only layer that reads layer `id`, or -1 if several do or if the layer is an output.
  LayerId only_consumer(LayerId id) const {
    const auto& readers = consumers_[static_cast<std::size_t>(id)];
    return readers.size() == 1 ? readers[0] : -1;
  }

  template <typename Op>
  const Op* op(LayerId id) const {
    return id < 0 ? nullptr : std::get_if<Op>(&at(id).op);
  }

  bool is_max_pool(LayerId id) const {
    const auto* pool = op<Pool>(id);
    return pool != nullptr && pool->kind == kernels::PoolKind::max && !pool->relu;
  }
  // Returns a copy of layer `id` with another operation and other inputs. The copy keeps the name
  // and the parameters.
  Layer changed(LayerId id, LayerOp op, std::vector<LayerId> inputs) const {
    Layer layer = at(id);
    layer.op = std::move(op);
    layer.inputs = std::move(inputs);
    return layer;
  }
  Layer rectified(LayerId max_pool, std::vector<LayerId> inputs) const {
    Pool pool = *op<Pool>(max_pool);
    pool.relu = true;
    return changed(max_pool, pool, std::move(inputs));
  }

  // Plans to replace layer `place` by the fused layer `layer` and to drop the earlier layers
  // `absorbed`.
  void replace(LayerId place, Layer layer, std::initializer_list<LayerId> absorbed) {
    replacement_[place] = std::move(layer);
    for (const LayerId id : absorbed) absorbed_[static_cast<std::size_t>(id)] = true;
  }

  void plan(LayerId id) {
    if (absorbed_[static_cast<std::size_t>(id)] || replacement_.contains(id)) return;
    const LayerId next = only_consumer(id);
    if (const auto* activation = op<Activation>(next)) return plan_activation(id, next, *activation);
    if (op<Relu>(next) == nullptr) return;
    if (const LayerId pool = only_consumer(next); op<Conv2d>(id) != nullptr && is_max_pool(pool)) {
      // Apply the ReLU after the maximum, which has fewer elements. The result is the same.
      replace(pool, rectified(pool, {id}), {next});
    } else if (is_max_pool(id)) {
      replace(next, rectified(id, at(id).inputs), {id});
    } else if (const auto* conv = op<Conv2d>(id); conv != nullptr) {
      Conv2d fused = *conv;
      fused.relu = true;
      replace(next, changed(id, fused, at(id).inputs), {id});
    } else if (const auto* norm = op<BatchNorm>(id); norm != nullptr && !norm->activation) {
      BatchNorm fused = *norm;
      fused.relu = true;
      replace(next, changed(id, fused, at(id).inputs), {id});
    } else if (op<Add>(id) != nullptr) {
      plan_residual(id, next);
    }
  }

  void plan_activation(LayerId id, LayerId next, const Activation& activation) {
    const auto* norm = op<BatchNorm>(id);
    if (norm == nullptr || norm->relu || norm->activation || at(id).inputs.size() > 1) return;
    BatchNorm fused = *norm;
    fused.activation = activation.function;
    replace(next, changed(id, fused, at(id).inputs), {id});
  }

  // Fuses relu(norm(x) + residual) into one layer. If both terms of the sum are batch norms, fuses
  // the later one, because its input may still be in the caches.
  void plan_residual(LayerId add, LayerId relu) {
    const auto& terms = at(add).inputs;
    if (terms.size() != 2) return;
    for (const LayerId norm : {std::max(terms[0], terms[1]), std::min(terms[0], terms[1])}) {
      const auto* op_of_norm = op<BatchNorm>(norm);
      if (op_of_norm == nullptr || only_consumer(norm) != add) continue;
      if (op_of_norm->relu || op_of_norm->activation || at(norm).inputs.size() > 1) continue;
      BatchNorm fused = *op_of_norm;
      fused.relu = true;
      const LayerId residual = norm == terms[0] ? terms[1] : terms[0];
      replace(relu, changed(norm, fused, {at(norm).inputs[0], residual}), {norm, add});
      return;
    }
  }

  const Network& network_;
  std::vector<std::vector<LayerId>> consumers_;
  std::vector<bool> absorbed_;
  std::map<LayerId, Layer> replacement_;
};

}  // namespace

Network fuse(const Network& network) { return Fuser(network).run(); }

}  // namespace convoy::app
