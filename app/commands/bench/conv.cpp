#include "app/commands/bench/conv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/commands/bench/math_choices.h"
#include "app/commands/commands.h"
#include "app/commands/validators.h"
#include "app/errors.h"
#include "app/model/op_table.h"
#include "app/model/zoo/zoo.h"
#include "kernels/conv2d/bench/cudnn.h"
#include "kernels/conv2d/bench/measure.h"

namespace convoy::app {
namespace {

namespace conv = kernels::conv;
namespace gemm = kernels::gemm;
using conv::Direction;
using conv::Task;

struct Options {
  std::string model = "resnet50";
  gemm::Math precision = gemm::Math::bf16;
  // If size or channels is 0, the model's default is used.
  std::int64_t batch = 256, size = 0, channels = 0;
  int candidates = 4;
  double milliseconds = 3;
  bool every = false, json = false, cudnn = true, statistics = false, norm_inputs = false,
       norm_gradients = false;
  std::vector<std::string> directions;
};

// The convolutions of a network that have the same shape. They are timed once.
struct Group {
  Task forward;
  std::string layer;  // the first layer with this shape
  int count = 0;
  // Whether the layer reads the images. Then the gradient of its input is not needed.
  bool first = false;
  // Whether the layer can apply a batch norm when it reads its input.
  bool applies_norm = false;
};

std::vector<Group> groups_of(const Options& options) {
  const Network network = make_network({options.model, options.batch, options.channels, options.size, 0});
  std::vector<Group> groups;
  for (const Layer& layer : network.layers()) {
    const auto* op = std::get_if<Conv2d>(&layer.op);
    if (op == nullptr) continue;
    const Shape x = network.input_shapes(layer)[0], y = layer.output;
    Group group{{}, layer.name, 1, layer.inputs[0] == network.input()};
    kernels::Conv2dProblem problem;
    problem.stride = op->stride, problem.padding = op->padding, problem.groups = op->groups;
    group.applies_norm = suits_input_affine(problem, {y[1], x[1] / op->groups, op->kernel[0], op->kernel[1]});
    group.forward.math = options.precision;
    group.forward.statistics = options.statistics && !op->bias;
    group.forward.geometry = {int(x[0]),
                              int(x[1]),
                              int(x[2]),
                              int(x[3]),
                              int(y[1]),
                              int(y[2]),
                              int(y[3]),
                              op->kernel[0],
                              op->kernel[1],
                              {op->stride[0], op->stride[1]},
                              {op->padding[0], op->padding[1]},
                              {op->dilation[0], op->dilation[1]},
                              op->groups};
    const auto same = [&](const Group& other) {
      return other.forward.geometry == group.forward.geometry && other.first == group.first;
    };
    const auto found = std::find_if(groups.begin(), groups.end(), same);
    if (found == groups.end())
      groups.push_back(group);
    else
      ++found->count;
  }
  return groups;
}

class ConvBenchmark {
 public:
  explicit ConvBenchmark(const Options& options) : options_(options) {}

  void run() {
    const std::vector<Group> groups = groups_of(options_);
    device_ = gemm::summarize_device();
    const std::string cudnn = options_.cudnn ? conv::cudnn_version() : "";
    if (!options_.json)
      fmt::print("{}, copy {:.2f} TB/s, {}\n{:<24} {:>16} {:<38} {:>9} {:>9} {:>8} {:>6} {:>8} {:>9}\n",
                 device_.name, device_.copy_bytes_per_second * 1e-12,
                 cudnn.empty() ? "no cuDNN" : "cuDNN " + cudnn, "layer (times)", "direction", "plan", "us",
                 "first", "TFLOP/s", "%copy", "x cuDNN", "error");
    for (const Group& group : groups)
      for (const Direction direction :
           {Direction::forward, Direction::backward_data, Direction::backward_weights})
        if (wanted(direction) && (!group.first || direction != Direction::backward_data))
          run_task(group, direction);
    print_means();
    if (wrong_ > 0) throw std::runtime_error(fmt::format("bench conv: {} plans are wrong", wrong_));
  }

 private:
  bool wanted(Direction direction) const {
    return options_.directions.empty() ||
           std::ranges::find(options_.directions, conv::name_of(direction)) != options_.directions.end();
  }

  std::vector<conv::Plan> contenders(const Task& task) const {
    if (!options_.every && !task.input_norm) return conv::worth_timing(task, options_.candidates);
    std::vector<conv::Plan> plans = conv::candidates(task);
    // If some plans fuse the extra work (statistics, ReLU), compare only these.
    const bool fuses = std::ranges::any_of(plans, &conv::Plan::fuses_extra);
    std::erase_if(plans, [&](const conv::Plan& plan) { return plan.fuses_extra != fuses; });
    const auto most = static_cast<std::size_t>(options_.candidates);
    if (!options_.every && plans.size() > most) plans.erase(plans.begin() + options_.candidates, plans.end());
    return plans;
  }

  double time_cudnn(conv::Bench& bench, const Task& task) const {
    if (!options_.cudnn) return 0;
    const conv::CudnnPlans plans = conv::cudnn_plans(task, options_.candidates + 2);
    double best = 0;
    for (const gemm::Timing& timing :
         bench.time(plans.binders, plans.workspace_bytes, options_.milliseconds * 1e3, 5))
      if (best == 0 || timing.microseconds < best) best = timing.microseconds;
    return best;
  }

  void run_task(const Group& group, Direction direction) {
    Task task = group.forward;
    task.direction = direction;
    task.statistics = task.statistics && direction == Direction::forward;
    if (options_.norm_inputs && group.applies_norm && direction != Direction::backward_data &&
        options_.precision == gemm::Math::bf16 && conv2d_fuses_input_norm(kernels::Backend::cuda))
      task.input_affine.emplace().least = 0;
    task.input_norm = options_.norm_gradients && direction == Direction::backward_data;
    task.input_norm =
        task.input_norm && std::ranges::any_of(conv::candidates(task), &conv::Plan::fuses_extra);
    conv::Bench bench(task);
    const std::vector<conv::Plan> plans = contenders(task);
    std::vector<gemm::Check> checks;
    for (std::size_t i = 0; i < plans.size(); ++i) checks.push_back(bench.check(plans[i], i + 1));
    const auto timings = bench.time(plans, options_.milliseconds * 1e3);
    const double cudnn = time_cudnn(bench, task);
    std::size_t best = 0;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      wrong_ += !checks[i].correct;
      if (timings[i].microseconds < timings[best].microseconds) best = i;
    }
    for (std::size_t i = 0; i < plans.size(); ++i)
      if (i == best || options_.every || !checks[i].correct)
        print(group, task, plans[i], checks[i], timings[i], timings[0].microseconds, cudnn);
    if (cudnn > 0) {
      ratios_[direction].push_back(cudnn / timings[best].microseconds);
      firsts_[direction].push_back(cudnn / timings[0].microseconds);
    }
    total_[direction] += group.count * timings[best].microseconds;
    total_cudnn_[direction] += group.count * cudnn;
  }

  void print(const Group& group, const Task& task, const conv::Plan& plan, const gemm::Check& check,
             const gemm::Timing& timing, double first, double cudnn) const {
    const double seconds = timing.microseconds * 1e-6;
    const double ratio = cudnn / timing.microseconds;
    const double of_copy = task.bytes() / device_.copy_bytes_per_second / seconds;
    if (options_.json) {
      const nlohmann::json object{{"device", device_.name},
                                  {"model", options_.model},
                                  {"layer", group.layer},
                                  {"layers", group.count},
                                  {"direction", conv::name_of(task.direction)},
                                  {"task", task.to_string()},
                                  {"plan", plan.to_string()},
                                  {"statistics", task.statistics && plan.fuses_extra},
                                  {"norm_inputs", task.input_affine.has_value()},
                                  {"norm_gradients", task.input_norm},
                                  {"microseconds", timing.microseconds},
                                  {"microseconds_first", first},
                                  {"tflops", task.operations() / seconds * 1e-12},
                                  {"of_copy", of_copy},
                                  {"cudnn_microseconds", cudnn},
                                  {"of_cudnn", ratio},
                                  {"relative_error", check.relative_error},
                                  {"correct", check.correct}};
      fmt::print("{}\n", object.dump());
    } else {
      fmt::print("{:<24} {:>16} {:<38} {:>9.2f} {:>9.2f} {:>8.2f} {:>6.1f} {:>8.3f} {:>9.1e}{}\n",
                 fmt::format("{} ({})", group.layer, group.count), conv::name_of(task.direction),
                 plan.to_string() + (task.input_affine ? ", norm" : ""), timing.microseconds, first,
                 task.operations() / seconds * 1e-12, 100 * of_copy, ratio, check.relative_error,
                 check.correct ? "" : " WRONG");
    }
    std::fflush(stdout);
  }

  // Prints geometric means of the time of cuDNN divided by the time of the fastest plan. "first
  // plan" in the output is the plan that would run if nothing was timed.
  void print_means() const {
    if (options_.json || ratios_.empty()) return;
    fmt::print("\ngeometric mean of x cuDNN over shapes; sums over layers\n");
    const auto mean = [](const std::vector<double>& values) {
      double sum = 0;
      for (const double value : values) sum += std::log(value);
      return std::exp(sum / double(values.size()));
    };
    std::vector<double> all, all_first;
    for (const auto& [direction, values] : ratios_) {
      const auto& first = firsts_.at(direction);
      fmt::print("{:>16} {:.3f} (first plan {:.3f}) over {}, least {:.3f}; {:.2f} ms, cuDNN {:.2f} ms\n",
                 conv::name_of(direction), mean(values), mean(first), values.size(),
                 *std::min_element(values.begin(), values.end()), total_.at(direction) * 1e-3,
                 total_cudnn_.at(direction) * 1e-3);
      all.insert(all.end(), values.begin(), values.end());
      all_first.insert(all_first.end(), first.begin(), first.end());
    }
    fmt::print("{:>16} {:.3f} (first plan {:.3f})\n", "all", mean(all), mean(all_first));
  }

  const Options options_;
  gemm::DeviceSummary device_;
  int wrong_ = 0;
  std::map<Direction, std::vector<double>> ratios_, firsts_;
  std::map<Direction, double> total_, total_cudnn_;
};

}  // namespace

void add_bench_conv(CLI::App& bench) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = bench.add_subcommand(
      "conv", "Convolutions of a network on the GPU, the fastest plan of each or all, next to cuDNN");
  verb->add_option("--model", options->model, "network, or FILE.onnx, whose convolutions to time")
      ->capture_default_str()
      ->type_name("NAME");
  verb->add_option("--batch", options->batch, "images")
      ->check(whole_number(1, 65536))
      ->capture_default_str()
      ->type_name("B");
  verb->add_option("--size", options->size, "height and width of the images; default: the file's, else 224")
      ->check(whole_number(1, 8192));
  verb->add_option("--channels", options->channels, "channels of the images; default: the file's, else 3")
      ->check(whole_number(1, 64));
  add_choice(*verb, "--precision", options->precision, "of products");
  verb->add_option("--directions", options->directions, "several with commas; default: all")
      ->delimiter(',')
      ->check(one_of({"forward", "backward_data", "backward_weights"}));
  verb->add_option("--candidates", options->candidates, "plans of each engine to time")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  verb->add_option("--milliseconds", options->milliseconds, "length of each of the five samples of a time")
      ->check(number_in("[0.1, 10000]"))
      ->type_name("MS")
      ->capture_default_str();
  verb->add_flag("!--no-cudnn", options->cudnn, "leave cuDNN out");
  verb->add_flag("--statistics", options->statistics,
                 "forward also sums up for batch norm, as training does, where an engine can on the way out; "
                 "other layers, and cuDNN, are timed without");
  verb->add_flag(
      "--norm-inputs", options->norm_inputs,
      "1x1 forward and backward_weights also apply a batch norm with ReLU as they read their input, "
      "in bf16 on Hopper; other layers, and cuDNN, are timed without");
  verb->add_flag("--norm-gradients", options->norm_gradients,
                 "backward_data also does a batch norm's backward_reduce, of its gradient and another one, "
                 "where an engine can on the way out; other layers, and cuDNN, are timed without");
  verb->add_flag(
      "--every-candidate", options->every,
      "time and print all candidates of all engines; with sums for batch norm, where an engine can "
      "take them, those that do");
  verb->add_flag("--json", options->json, "one JSON object a row");
  verb->callback([options] { ConvBenchmark(*options).run(); });
}

}  // namespace convoy::app
