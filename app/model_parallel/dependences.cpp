#include "app/model_parallel/dependences.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>

namespace convoy::app {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

class DependenceFinder {
 public:
  explicit DependenceFinder(const StepGraph& graph)
      : graph_(graph),
        writer_(graph.tensors.size(), -1),
        readers_(graph.tensors.size()),
        leader_(graph.nodes.size()) {
    std::iota(leader_.begin(), leader_.end(), 0);
  }

  StepDependences run() {
    for (int node = 0; node < std::ssize(graph_.nodes); ++node) {
      for (const TensorId input : graph_.nodes[at(node)].inputs) read(node, input);
      for (const TensorId output : graph_.nodes[at(node)].outputs) write(node, output);
    }
    number_groups();
    return std::move(result_);
  }

 private:
  bool inside_step(TensorId tensor) const {
    return graph_.tensors[at(tensor)].role == TensorRole::activation;
  }

  void read(int node, TensorId tensor) {
    if (!inside_step(tensor)) return keep_together(node, tensor);
    std::vector<int>& readers = readers_[at(tensor)];
    if (writer_[at(tensor)] < 0 || (!readers.empty() && readers.back() == node)) return;
    readers.push_back(node);
    // MixForward runs on the device that has the images. The node that reads the mixed images must
    // be on the same device, because in an evaluation step this node reads the images themselves.
    if (graph_.nodes[at(writer_[at(tensor)])].is<MixForward>()) join(writer_[at(tensor)], node);
    result_.uses.push_back({writer_[at(tensor)], node, tensor});
  }

  void write(int node, TensorId tensor) {
    if (!inside_step(tensor)) return keep_together(node, tensor);
    if (const int before = writer_[at(tensor)]; before >= 0 && before != node) {
      join(before, node);
      for (const int reader : readers_[at(tensor)])
        if (reader != node) result_.order.emplace_back(reader, node);
    }
    writer_[at(tensor)] = node;
    readers_[at(tensor)].clear();
  }

  void keep_together(int node, TensorId tensor) {
    const auto [first, is_new] = holder_.try_emplace(lasting_name(graph_, tensor), node);
    if (!is_new) join(first->second, node);
  }

  int find(int node) {
    while (leader_[at(node)] != node) node = leader_[at(node)] = leader_[at(leader_[at(node)])];
    return node;
  }
  void join(int a, int b) {
    const int first = std::min(find(a), find(b)), second = std::max(find(a), find(b));
    leader_[at(second)] = first;
  }

  void number_groups() {
    result_.group.assign(graph_.nodes.size(), -1);
    for (int node = 0; node < std::ssize(graph_.nodes); ++node) {
      int& number = result_.group[at(find(node))];  // the number of this node's group
      if (number < 0) number = result_.groups++;
      result_.group[at(node)] = number;
    }
  }

  const StepGraph& graph_;
  StepDependences result_;
  // The last node that wrote each tensor, by TensorId.
  std::vector<int> writer_;
  // The nodes that read each tensor after its last writer, by TensorId.
  std::vector<std::vector<int>> readers_;
  std::vector<int> leader_;
  // Maps the lasting_name() of a tensor to the first node that uses the tensor. All later users
  // join the group of this node (leader_), because the users of such a tensor must run on one rank.
  std::map<std::string, int> holder_;
};

}  // namespace

StepDependences find_dependences(const StepGraph& graph) { return DependenceFinder(graph).run(); }

std::string lasting_name(const StepGraph& graph, TensorId id) {
  const Tensor& tensor = graph.tensors[at(id)];
  switch (tensor.role) {
    case TensorRole::activation:
    case TensorRole::host:
      return {};
    case TensorRole::images:
      return "(images)";
    case TensorRole::labels:
      return "(labels)";
    case TensorRole::transforms:
      return "(transforms)";
    case TensorRole::mix:
      return "(" + tensor.name + ")";
    case TensorRole::metrics:
      return "(metrics)";
    case TensorRole::gradient:
      return graph.tensors[at(tensor.same_layout_as)].name;
    case TensorRole::parameter:
    case TensorRole::parameter_copy:  // named like its parameter
    case TensorRole::optimizer_state:
    case TensorRole::state:
      return tensor.name;
  }
  throw std::logic_error("internal error: a tensor has no known role");
}

}  // namespace convoy::app
