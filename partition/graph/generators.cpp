// The families of generated graphs. A graph consists of repeated units, such as layers or time
// steps.
#include "partition/graph/generators.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "partition/graph/brief.h"
#include "partition/graph/step_builder.h"
#include "partition/random.h"

namespace convoy::partition {
namespace {

using Op = StepBuilder::Op;

// Returns a graph of about `wanted` nodes. build(n) makes a graph of n units. The number of nodes
// is linear in n, so build(1) and build(2) tell how many units are needed.
template <typename Build>
TaskGraph of_size(NodeIndex wanted, const Build& build) {
  const NodeIndex one = build(1).node_count(), two = build(2).node_count();
  const double more = std::max(0.0, static_cast<double>(wanted - one) / static_cast<double>(two - one));
  return build(1 + static_cast<int>(std::lround(more)));
}

Bytes floats(double count) { return static_cast<Bytes>(4 * count); }

Op matmul(StepBuilder& step, const std::string& name, double rows, double inner, double columns,
          std::vector<Op> inputs) {
  return step.forward(name, 2 * rows * inner * columns, floats(rows * columns), std::move(inputs),
                      floats(inner * columns));
}
Op pointwise(StepBuilder& step, const std::string& name, double count, std::vector<Op> inputs) {
  return step.forward(name, count, floats(count), std::move(inputs));
}

Op matmul_shared(StepBuilder& step, const std::string& name, double rows, double inner, double columns,
                 std::vector<Op> inputs, Op owner) {
  if (owner == kNone) return matmul(step, name, rows, inner, columns, std::move(inputs));
  return step.forward_shared(name, 2 * rows * inner * columns, floats(rows * columns), std::move(inputs),
                             owner);
}

// The ops of the first time step, which own the variables of a recurrent cell. Later time steps
// share the variables. kNone before the first time step.
struct CellOwners {
  Op input = kNone, hidden = kNone;
};

// Adds an LSTM cell: the products with input and hidden state, four gates, the new memory and the
// output. Returns the ops of output and memory.
std::pair<Op, Op> lstm_cell(StepBuilder& step, const std::string& name, double batch, double width, Op input,
                            Op hidden, Op memory, CellOwners& owners) {
  const Op from_input = matmul_shared(step, name + "/input", batch, width, 4 * width, {input}, owners.input);
  const Op from_hidden =
      matmul_shared(step, name + "/hidden", batch, width, 4 * width, {hidden}, owners.hidden);
  if (owners.input == kNone) owners = {from_input, from_hidden};
  const Op gates = pointwise(step, name + "/gates", 4 * batch * width, {from_input, from_hidden});
  std::array<Op, 4> gate{};
  constexpr std::array<const char*, 4> kGates = {"/i", "/f", "/g", "/o"};
  for (std::size_t i = 0; i < gate.size(); ++i)
    gate[i] = pointwise(step, name + kGates[i], batch * width, {gates});
  const Op written = pointwise(step, name + "/written", batch * width, {gate[0], gate[2]});
  const Op remembered = pointwise(step, name + "/remembered", batch * width, {gate[1], memory});
  const Op state = pointwise(step, name + "/memory", batch * width, {written, remembered});
  const Op squashed = pointwise(step, name + "/tanh", batch * width, {state});
  return {pointwise(step, name + "/output", batch * width, {gate[3], squashed}), state};
}

void recurrent_stack(StepBuilder& step, int layers, double batch, double width, std::vector<Op> inputs) {
  for (int layer = 0; layer < layers; ++layer) {
    Op hidden = pointwise(step, fmt::format("layer{}/h0", layer), batch * width, {});
    Op memory = pointwise(step, fmt::format("layer{}/c0", layer), batch * width, {});
    CellOwners owners;
    for (std::size_t t = 0; t < inputs.size(); ++t) {
      std::tie(hidden, memory) = lstm_cell(step, fmt::format("layer{}/step{}", layer, t), batch, width,
                                           inputs[t], hidden, memory, owners);
      inputs[t] = hidden;
    }
  }
}

Op convolution(StepBuilder& step, const std::string& name, double batch, double side, double in, double out,
               Op input, Op* owner = nullptr) {
  const double pixels = batch * side * side;
  const Op product =
      matmul_shared(step, name, pixels, 9 * in, out, {input}, owner != nullptr ? *owner : kNone);
  if (owner != nullptr && *owner == kNone) *owner = product;
  const Op normalised =
      step.forward(name + "/norm", 8 * pixels * out, floats(pixels * out), {product}, floats(2 * out));
  return pointwise(step, name + "/relu", pixels * out, {normalised});
}

Op attention_head(StepBuilder& step, const std::string& name, double tokens, double width, double head,
                  Op input) {
  const Op query = matmul(step, name + "/q", tokens, width, head, {input});
  const Op key = matmul(step, name + "/k", tokens, width, head, {input});
  const Op value = matmul(step, name + "/v", tokens, width, head, {input});
  const Op scores =
      step.forward(name + "/scores", 2 * tokens * tokens * head, floats(tokens * tokens), {query, key});
  const Op scaled = pointwise(step, name + "/scale", tokens * tokens, {scores});
  const Op softmax = pointwise(step, name + "/softmax", tokens * tokens, {scaled});
  return step.forward(name + "/context", 2 * tokens * tokens * head, floats(tokens * head), {softmax, value});
}

Op transformer_layer(StepBuilder& step, const std::string& name, int heads, double tokens, double width,
                     Op input) {
  std::vector<Op> contexts;
  for (int head = 0; head < heads; ++head)
    contexts.push_back(
        attention_head(step, fmt::format("{}/head{}", name, head), tokens, width, width / heads, input));
  const Op joined = pointwise(step, name + "/concat", tokens * width, contexts);
  const Op projected = matmul(step, name + "/project", tokens, width, width, {joined});
  const Op added = pointwise(step, name + "/add1", tokens * width, {projected, input});
  const Op normalised = pointwise(step, name + "/norm1", tokens * width, {added});
  const Op wide = matmul(step, name + "/ff1", tokens, width, 4 * width, {normalised});
  const Op active = pointwise(step, name + "/gelu", tokens * 4 * width, {wide});
  const Op narrow = matmul(step, name + "/ff2", tokens, 4 * width, width, {active});
  const Op again = pointwise(step, name + "/add2", tokens * width, {narrow, normalised});
  return pointwise(step, name + "/norm2", tokens * width, {again});
}

}  // namespace

TaskGraph generate_recurrent(const GeneratorOptions& options) {
  return of_size(options.nodes, [](int steps) {
    constexpr double kBatch = 64, kWidth = 1024;
    StepBuilder step;
    std::vector<Op> words;
    for (int t = 0; t < 2 * steps; ++t)
      words.push_back(pointwise(step, fmt::format("word{}", t), kBatch * kWidth, {}));
    recurrent_stack(step, 8, kBatch, kWidth, words);
    return step.finish();
  });
}

TaskGraph generate_character_crn(const GeneratorOptions& options) {
  return of_size(options.nodes, [](int words) {
    constexpr double kBatch = 32, kCharacters = 20, kWidth = 1024;
    StepBuilder step;
    std::vector<Op> features, owners(7 + 4, kNone);
    for (int word = 0; word < 2 * words; ++word) {
      const std::string name = fmt::format("word{}", word);
      const Op characters = pointwise(step, name + "/characters", kBatch * kCharacters * 16, {});
      std::vector<Op> pooled;
      for (int width = 1; width <= 7; ++width) {
        const double out = 25.0 * width;
        const std::string conv = fmt::format("{}/conv{}", name, width);
        Op& owner = owners[width - 1];
        const Op product =
            matmul_shared(step, conv, kBatch * kCharacters, 16 * width, out, {characters}, owner);
        if (owner == kNone) owner = product;
        pooled.push_back(pointwise(step, fmt::format("{}/pool{}", name, width), kBatch * out, {product}));
      }
      Op highway = pointwise(step, name + "/concat", kBatch * kWidth, pooled);
      for (int layer = 0; layer < 2; ++layer) {
        std::array<Op, 2> product{};
        for (int side = 0; side < 2; ++side) {
          Op& owner = owners[7 + 2 * layer + side];
          product[side] =
              matmul_shared(step, fmt::format("{}/highway{}/{}", name, layer, side == 0 ? "gate" : "change"),
                            kBatch, kWidth, kWidth, {highway}, owner);
          if (owner == kNone) owner = product[side];
        }
        highway = pointwise(step, fmt::format("{}/highway{}", name, layer), kBatch * kWidth,
                            {product[0], product[1], highway});
      }
      features.push_back(highway);
    }
    recurrent_stack(step, 2, kBatch, kWidth, features);
    return step.finish();
  });
}

TaskGraph generate_wide_resnet(const GeneratorOptions& options) {
  return of_size(options.nodes, [](int blocks) {
    constexpr double kBatch = 32, kSide = 28, kChannels = 64;
    constexpr int kGroups = 8;
    StepBuilder step;
    Op input = pointwise(step, "images", kBatch * kSide * kSide * 3, {});
    input = convolution(step, "stem", kBatch, kSide, 3, kChannels * kGroups, input);
    for (int block = 0; block < blocks; ++block) {
      std::vector<Op> branches = {input};
      for (int group = 0; group < kGroups; ++group) {
        const std::string name = fmt::format("block{}/group{}", block, group);
        const Op first =
            convolution(step, name + "/conv1", kBatch, kSide, kChannels * kGroups, kChannels, input);
        branches.push_back(convolution(step, name + "/conv2", kBatch, kSide, kChannels, kChannels, first));
      }
      input = pointwise(step, fmt::format("block{}/add", block), kBatch * kSide * kSide * kChannels * kGroups,
                        branches);
    }
    matmul(step, "classifier", kBatch, kChannels * kGroups, 1000, {input});
    return step.finish();
  });
}

TaskGraph generate_transformer(const GeneratorOptions& options) {
  return of_size(options.nodes, [](int layers) {
    constexpr double kTokens = 512, kWidth = 1024;
    StepBuilder step;
    Op input = pointwise(step, "tokens", kTokens * kWidth, {});
    for (int layer = 0; layer < layers; ++layer)
      input = transformer_layer(step, fmt::format("layer{}", layer), 16, kTokens, kWidth, input);
    matmul(step, "logits", kTokens, kWidth, 32000, {input});
    return step.finish();
  });
}

TaskGraph generate_e3d(const GeneratorOptions& options) {
  return of_size(options.nodes, [](int steps) {
    constexpr double kBatch = 4, kSide = 32, kChannels = 64, kCount = kBatch * kSide * kSide * kChannels;
    constexpr int kLayers = 4, kWindow = 5;
    StepBuilder step;
    std::vector<std::vector<Op>> memories(kLayers);
    std::vector<Op> hidden(kLayers);
    std::vector<std::array<Op, 4>> owners(kLayers, {kNone, kNone, kNone, kNone});
    for (int layer = 0; layer < kLayers; ++layer) {
      hidden[layer] = pointwise(step, fmt::format("layer{}/h0", layer), kCount, {});
      memories[layer] = {pointwise(step, fmt::format("layer{}/c0", layer), kCount, {})};
    }
    for (int t = 0; t < kWindow + steps; ++t) {
      Op input = pointwise(step, fmt::format("frame{}", t), kCount, {});
      for (int layer = 0; layer < kLayers; ++layer) {
        const std::string name = fmt::format("layer{}/step{}", layer, t);
        const auto gate = [&](int kind, Op from) {
          constexpr std::array<const char*, 4> kGates = {"/recall", "/input", "/hidden", "/output"};
          return convolution(step, name + kGates[kind], kBatch, kSide, kChannels, kChannels, from,
                             &owners[layer][kind]);
        };
        std::vector<Op> recalled = {gate(0, hidden[layer])};
        const std::vector<Op>& past = memories[layer];
        recalled.insert(recalled.end(), past.end() - std::min<std::ptrdiff_t>(kWindow, std::ssize(past)),
                        past.end());
        const Op attention = pointwise(step, name + "/attention", kCount, recalled);
        const Op from_input = gate(1, input), from_hidden = gate(2, hidden[layer]);
        const Op written = pointwise(step, name + "/written", kCount, {from_input, from_hidden});
        const Op memory = pointwise(step, name + "/memory", kCount, {attention, written});
        const Op output = gate(3, from_hidden);
        memories[layer].push_back(memory);
        hidden[layer] = input = pointwise(step, name + "/h", kCount, {output, memory});
      }
    }
    return step.finish();
  });
}

TaskGraph generate_random(const GeneratorOptions& options, double degree) {
  Random random(options.seed);
  TaskGraphBuilder builder("generated graph");
  const auto edges = static_cast<std::int64_t>(degree * options.nodes);
  builder.reserve(options.nodes, edges);
  constexpr std::int64_t kLongest = 360'000, kLargest = 4 << 20;
  for (NodeIndex node = 0; node < options.nodes; ++node) {
    TaskNode task;
    task.id = node;
    task.time = 1000 * (1 + random.below(kLongest / 1000));
    task.output_bytes = random.below(kLargest);
    task.resident_bytes = random.below(4) == 0 ? random.below(4 * kLargest) : 0;
    builder.add_node(task);
  }
  // Choose as many random edges as requested. Duplicates are removed, so the graph may have fewer.
  std::vector<std::pair<NodeIndex, NodeIndex>> drawn;
  for (std::int64_t i = 0; i < edges && options.nodes > 1; ++i) {
    const auto from = static_cast<NodeIndex>(random.below(options.nodes - 1));
    drawn.emplace_back(from, from + 1 + static_cast<NodeIndex>(random.below(options.nodes - 1 - from)));
  }
  std::sort(drawn.begin(), drawn.end());
  drawn.erase(std::unique(drawn.begin(), drawn.end()), drawn.end());
  for (const auto& [from, to] : drawn) builder.add_edge(from, to);
  return builder.build();
}

TaskGraph generate_task_graph(std::string_view family, const GeneratorOptions& options) {
  if (options.nodes < 1) throw std::runtime_error(fmt::format("{} nodes, expected 1 or more", options.nodes));
  if (family == "recurrent") return generate_recurrent(options);
  if (family == "crn") return generate_character_crn(options);
  if (family == "wide-resnet") return generate_wide_resnet(options);
  if (family == "transformer") return generate_transformer(options);
  if (family == "e3d") return generate_e3d(options);
  if (family == "random") return generate_random(options);
  if (family == "sparse") return generate_random(options, 3);
  throw std::runtime_error(fmt::format(
      "graph family \"{}\", expected recurrent, crn, wide-resnet, transformer, e3d, random or sparse",
      brief(family)));
}

}  // namespace convoy::partition
